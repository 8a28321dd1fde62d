"""Tests of `proxy/deployment_health`."""
