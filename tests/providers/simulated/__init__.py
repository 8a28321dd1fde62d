"""Tests of providers.simulated, one file for each of its modules."""
