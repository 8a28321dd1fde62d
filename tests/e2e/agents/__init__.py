"""Agent frameworks, unmodified, in front of vendors that check what the real ones check."""
