"""Tests of proxy.plugins.shipped."""
