"""Commands that show what teams use."""
