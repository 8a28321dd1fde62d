"""Tests of `proxy/http_client`."""
