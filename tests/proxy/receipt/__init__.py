"""Tests of `proxy/receipt`."""
