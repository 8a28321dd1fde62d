"""Tests of `config/checks`."""
