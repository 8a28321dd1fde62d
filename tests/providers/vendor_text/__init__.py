"""Tests of `providers/vendor_text`."""
