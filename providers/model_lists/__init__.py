"""Reads vendors' own lists of their models."""
