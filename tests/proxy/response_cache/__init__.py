"""Tests of `proxy/response_cache`."""
