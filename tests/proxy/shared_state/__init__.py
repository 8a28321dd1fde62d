"""Tests of `proxy/shared_state`."""
