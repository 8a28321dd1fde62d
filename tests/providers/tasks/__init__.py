"""Tests of `providers/tasks`."""
