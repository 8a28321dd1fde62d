"""Reads a vendor's own words: the cause of a failure, and the part of the words that may be shown."""
