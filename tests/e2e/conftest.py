"""The real parts that tests from outside need. Never a fake one."""

from tests.support.clients import clients
from tests.support.engine import engine

__all__ = ["clients", "engine"]
