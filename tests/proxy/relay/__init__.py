"""Tests of `proxy/relay`."""
