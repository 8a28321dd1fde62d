"""Tests of `proxy/dispatch`."""
