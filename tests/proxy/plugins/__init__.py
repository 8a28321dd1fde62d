"""Tests of proxy.plugins."""
