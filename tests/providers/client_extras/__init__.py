"""Tests of `providers/client_extras`."""
