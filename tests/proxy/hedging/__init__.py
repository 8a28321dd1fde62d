"""Tests of `proxy/hedging`."""
