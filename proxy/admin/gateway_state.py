"""Whether all is well with a gateway, and if not, why: for the page's headline and for `/status`. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from proxy.admin.reload_history import PastReload
from proxy.admin.route_states import Health, RouteRow, failing_names
from proxy.admin.status import GatewayView

MOST_NAMES: Final = 5
"""Failing names that are listed; the others are counted."""


class Level(IntEnum):
    """How a gateway is; the greater the worse. WELL: a restart would work, and no name fails."""

    WELL = 0
    TROUBLED = 1
    NOT_READY = 2


@dataclass(frozen=True, slots=True)
class GatewayState:
    """How a gateway is, and the `reasons` if it is not well, each a clause. `failing` are the names of which no target
    is up; `refused` are the problems for which the config file on disk was refused, empty if it was not."""

    level: Level
    reasons: Sequence[str]
    failing: Sequence[str]
    refused: Sequence[str]


def gateway_state(
    view: GatewayView, health: Mapping[str, Health], routes: Iterable[RouteRow], reloads: Sequence[PastReload]
) -> GatewayState:
    """Return the state of a gateway: `health` by deployment, `reloads` with the newest first. The config file is read
    when it changes and at each reload; the newest reload knows it as it is."""
    failing = failing_names(view.snapshot, view.status, routes)
    refused = reloads[0].problems if reloads else ()
    reasons = list(_reasons(health, failing, refused))
    if not view.status.ready:
        return GatewayState(Level.NOT_READY, ("it takes no requests now", *reasons), failing, refused)
    return GatewayState(Level.TROUBLED if reasons else Level.WELL, reasons, failing, refused)


def _reasons(health: Mapping[str, Health], failing: Sequence[str], refused: Sequence[str]) -> Iterator[str]:
    if refused:
        yield "the config file on disk is refused: a restart would fail"
    if failing:
        more = f" and {len(failing) - MOST_NAMES} more" if len(failing) > MOST_NAMES else ""
        yield f"no target is up of {', '.join(failing[:MOST_NAMES])}{more}"
    if troubled := sum(1 for each in health.values() if each):
        yield f"{troubled:,} of {len(health):,} deployment{'s' if len(health) != 1 else ''} not up"
