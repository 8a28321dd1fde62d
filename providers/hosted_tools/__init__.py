"""Translates hosted tools, which vendors run themselves, between the forms of the vendors that have the same tool."""
