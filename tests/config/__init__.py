"""Tests of `config`, one file for each of its modules."""
