"""Tests of `proxy/accounting`."""
