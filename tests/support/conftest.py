"""Fixtures for the tests of the test helpers themselves."""

from tests.support.engine import engine

__all__ = ["engine"]
