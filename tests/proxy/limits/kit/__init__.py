"""Shared helpers of the tests of limits: coordinators with a clock of their own, and simulated processes."""
