"""Warn of a `hedge` that is written at a name which leads to one deployment: there is no other for a second attempt."""

from collections.abc import Iterator, Mapping

from config.checks.check_between_sections import CheckContext, choices, route_maps
from config.problem import Problem
from config.sections.route_section import RouteSection

_MOST_STEPS = 16
"""Routes within routes that are followed. A circle is another check's problem."""


def doubtful_hedges(context: CheckContext) -> Iterator[Problem]:
    """Yield a warning for each."""
    config, routes = context.config, dict(route_maps(context.config))
    for path, _, members in choices(config):
        at = path[:-1]
        named = config.models[str(at[1])] if at[0] == "models" else routes[at[:-1]][str(at[-1])]
        if named.hedge is None or named.hedge.mode == "off":
            continue
        if at[0] == "models":
            count = max(1, len(members))
        else:
            own = routes[at[:-1]] if at[0] == "teams" else {}
            count = _reached(context, own, str(at[-1]), _MOST_STEPS)
        if count < 2:
            yield context.at_key((*at, "hedge"), "has no effect: the name leads to one deployment")


def _reached(context: CheckContext, own: Mapping[str, RouteSection], name: str, steps: int) -> int:
    """Return how many deployments a name leads to, at most 2, as far as it is known; a team's own routes come first."""
    config = context.config
    route = own.get(name) or config.routes.get(name)
    if route is None:
        if context.names.is_deployment(name):
            return 1
        model = config.models.get(name) or config.models.get(f"{name.partition('/')[0]}/*")
        return 1 if model is None else min(2, max(1, len(model.deployments)))
    if not steps:
        return 2
    names = {target.target for target in route.targets}
    return min(2, sum(_reached(context, own, each, steps - 1) for each in names))
