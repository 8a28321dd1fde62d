"""Tests of `proxy/admin/last_hour`."""
