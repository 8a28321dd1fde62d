"""Tests of `proxy/surfaces/response`."""
