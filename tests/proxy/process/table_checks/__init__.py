"""Tests of `proxy/process/table_checks`."""
