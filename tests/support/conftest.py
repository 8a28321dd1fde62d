"""Fixtures for the tests of the test rig itself. Never one that a test of the gateway needs."""

from tests.support.engine import engine

__all__ = ["engine"]
