"""Tests of proxy.plugins.request_strings."""
