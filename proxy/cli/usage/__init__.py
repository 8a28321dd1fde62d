"""Commands that show the usage of teams."""
