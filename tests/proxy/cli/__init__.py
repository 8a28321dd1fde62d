"""Tests of `proxy/cli`."""
