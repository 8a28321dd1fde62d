"""Tests of `providers`, one file for each of its modules."""
