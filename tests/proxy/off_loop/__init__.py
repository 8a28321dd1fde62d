"""Tests of `proxy/off_loop`."""
