"""Tests of `providers/dialects/platforms`."""
