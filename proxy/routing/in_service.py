"""Removes the deployments that the operator has taken out of service from a plan."""

from collections.abc import Sequence
from dataclasses import replace

from providers.target import Target
from proxy.errors import out_of_service
from proxy.routing.request_plan import Plan


def is_served(targets: Sequence[Target]) -> bool:
    """Return whether one of the targets may be called. A name without such a target is refused, and is missing in lists
    of models."""
    return not all(target.out_of_service for target in targets)


def in_service(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return the targets that may be called, in their order."""
    return tuple(target for target in targets if not target.out_of_service)


def plan_in_service(whole: Plan) -> Plan:
    """Return a plan over the deployments in service. Raises GatewayError if none of its targets is in service.

    The policy has ordered all members before. Removing some members does not disturb the order of the others: weights
    keep their proportions, and round robin stays even.
    """
    targets = in_service(whole.targets)
    if not targets:
        raise out_of_service(whole.asked, whole.by_route)
    fallbacks = {kind: in_service(group) for kind, group in whole.fallbacks.items()}
    away = tuple(dict.fromkeys(target for target in whole.every_target if target.out_of_service))
    return replace(whole, targets=targets, fallbacks=fallbacks, out_of_service=away)
