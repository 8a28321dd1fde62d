"""Tests of `providers/mock`."""
