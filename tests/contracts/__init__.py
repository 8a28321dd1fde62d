"""Vendors' published types as judges of what goes out and of the fixtures, and the checks that every dialect passes."""
