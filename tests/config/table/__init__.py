"""Tests of `config/table`."""
