"""Tests of `providers/dialects/shared`."""
