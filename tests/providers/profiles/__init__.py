"""Tests of `providers/profiles`."""
