"""Tests of `config/reading`."""
