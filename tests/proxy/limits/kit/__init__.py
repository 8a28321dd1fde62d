"""Shared by the tests of limits: a coordinator with a clock of its own, and simulated processes."""
