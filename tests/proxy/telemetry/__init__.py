"""Tests of `proxy/telemetry`."""
