"""Tests of `proxy/overload`."""
