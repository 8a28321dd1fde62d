"""Tests of `proxy/admin/markup`."""
