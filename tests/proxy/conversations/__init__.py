"""Tests of `proxy/conversations`."""
