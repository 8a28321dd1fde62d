"""Tests of `proxy/surfaces/request`."""
