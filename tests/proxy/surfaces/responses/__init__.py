"""Tests of `proxy/surfaces/responses`."""
