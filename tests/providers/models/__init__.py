"""Tests of `providers/models`."""
