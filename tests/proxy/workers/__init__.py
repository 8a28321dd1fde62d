"""Tests of `proxy/workers`."""
