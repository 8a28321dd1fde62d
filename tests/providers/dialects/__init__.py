"""Tests of `providers/dialects`: a folder for each dialect, and tests that run over several."""
