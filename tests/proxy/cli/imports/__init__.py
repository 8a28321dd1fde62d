"""Tests of `proxy/cli/imports`."""
