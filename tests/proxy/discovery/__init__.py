"""Tests of `proxy/discovery`."""
