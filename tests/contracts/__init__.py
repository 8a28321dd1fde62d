"""Vendors' published types as judges of the bodies that the gateway sends and of the fixtures, and the checks that
every dialect passes."""
