"""Tests of `proxy/routing`."""
