"""Tests of `proxy/forms`."""
