"""Tests of `proxy/listener`."""
