"""Warns of a Redis that may evict its counters. It queries Redis, and therefore runs only if a configuration is
checked."""

from collections.abc import Iterator

from config.checks.open_listener import LocatedConfig
from config.problem import Path, Problem
from proxy.shared_state.redis_eviction import eviction_warning, policy_now


def redis_warnings(loaded: LocatedConfig) -> Iterator[Problem]:
    """Yield the problems of the Redis of a configuration, if Redis responds at once."""
    settings = loaded.config.server.shared
    if settings is not None and (policy := policy_now(settings)) is not None:
        path: Path = ("server", "shared", "redis")
        yield Problem.at(loaded.locate(path), path, eviction_warning(policy))
