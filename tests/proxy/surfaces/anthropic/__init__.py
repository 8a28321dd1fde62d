"""Tests of `proxy/surfaces/anthropic`."""
