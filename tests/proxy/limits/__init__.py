"""Tests of `proxy/limits`."""
