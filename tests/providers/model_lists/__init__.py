"""Tests of `providers/model_lists`."""
