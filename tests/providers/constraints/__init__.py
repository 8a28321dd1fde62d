"""Tests of `providers/constraints`."""
