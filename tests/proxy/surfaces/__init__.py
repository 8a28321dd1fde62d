"""Tests of `proxy/surfaces`, the cases of the APIs that a surface decides, and real clients' requests."""
