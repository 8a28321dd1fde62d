"""Tests of `proxy`, one file for each of its modules."""
