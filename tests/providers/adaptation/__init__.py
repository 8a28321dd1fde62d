"""Tests of `providers/adaptation`."""
