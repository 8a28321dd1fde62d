"""Tests of `providers/list_prices`."""
