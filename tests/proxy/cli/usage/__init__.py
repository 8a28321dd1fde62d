"""Tests of `proxy/cli/usage`."""
