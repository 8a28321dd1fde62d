"""Tests of `proxy/tracing`."""
