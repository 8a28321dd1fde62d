"""Tests of `proxy/cli/prices`."""
