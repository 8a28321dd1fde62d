"""One claim, checked over every dialect, profile or surface."""
