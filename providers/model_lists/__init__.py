"""Vendors' own lists of their models: where they are, and what one page of each says."""
