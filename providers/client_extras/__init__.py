"""Checks of the fields, headers and media addresses that clients may send beyond the unified fields."""
