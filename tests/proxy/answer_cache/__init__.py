"""Tests of `proxy/answer_cache`."""
