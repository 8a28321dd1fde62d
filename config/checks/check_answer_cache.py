"""Check that each `cache` section with Redis has `server.shared` and a secret. Also check that a deployment has no
`cache`, `affinity` or `hedge`, which have no effect there."""

from collections.abc import Iterator

from config.checks.check_between_sections import CheckContext, levels
from config.problem import Path, Problem, dotted
from config.sections.cache_section import CacheSection
from config.sections.route_section import RouteSection
from config.table.table_schema import DeploymentSection, GatewayConfig


def check_answer_cache(context: CheckContext) -> tuple[Problem, ...]:
    """Return every problem of response caches."""
    return (*_without_redis(context), *_without_secret(context), *_without_effect(context))


def cache_sections(config: GatewayConfig) -> Iterator[tuple[Path, CacheSection]]:
    """Yield the path and value of every `cache` section in the configuration."""
    for path, level in levels(config):
        if level.cache is not None:
            yield (*path, "cache"), level.cache
    routes: dict[Path, RouteSection] = {("routes", name): route for name, route in config.routes.items()}
    for team, section in config.teams.items():
        routes |= {("teams", team, "routes", name): route for name, route in section.routes.items()}
    for path_of_route, route in routes.items():
        if route.cache is not None:
            yield (*path_of_route, "cache"), route.cache


def _without_redis(context: CheckContext) -> Iterator[Problem]:
    if context.config.server.shared is not None or "server.shared" in context.faulty:
        return
    for path, cache in cache_sections(context.config):
        if cache.where == "redis":
            yield context.at_value((*path, "where"), "needs server.shared, which holds the address of Redis")


def _without_secret(context: CheckContext) -> Iterator[Problem]:
    for path, cache in cache_sections(context.config):
        if cache.where == "redis" and cache.secret is None and dotted((*path, "secret")) not in context.faulty:
            message = "redis needs a secret: without one, anyone with write access to Redis can forge responses"
            yield context.at_value((*path, "where"), message)


def _without_effect(context: CheckContext) -> Iterator[Problem]:
    for path, level in levels(context.config):
        if not isinstance(level, DeploymentSection):
            continue
        for name in ("cache", "affinity", "hedge"):
            if getattr(level, name) is not None:
                yield context.at_key((*path, name), "has no effect on a deployment: write it for the model, or a route")
