"""Tests of `proxy/upstream`."""
