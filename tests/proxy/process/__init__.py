"""Tests of `proxy/process`."""
