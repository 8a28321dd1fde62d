"""Tests of `proxy/gateway`."""
