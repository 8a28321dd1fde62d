"""Warn of a Redis that may throw away what is counted in it. Asks it, and so only where somebody checks a table."""

from collections.abc import Iterator

from config.checks.open_listener import LocatedConfig
from config.problem import Path, Problem
from proxy.shared_state.redis_eviction import eviction_warning, policy_now


def redis_warnings(loaded: LocatedConfig) -> Iterator[Problem]:
    """Yield what is wrong with the Redis of a table, where that says so at once."""
    settings = loaded.config.server.shared
    if settings is not None and (policy := policy_now(settings)) is not None:
        path: Path = ("server", "shared", "redis")
        yield Problem.at(loaded.locate(path), path, eviction_warning(policy))
