"""Tests of the command `logs`."""
