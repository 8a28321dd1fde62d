"""Tests of `proxy/teams`."""
