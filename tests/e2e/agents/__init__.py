"""Agent frameworks, unmodified, in front of fake vendors with the checks of the real ones."""
