"""A keeper of leases that exchanges nothing: a test sets its state, and sees the calls that it received."""

import math
from dataclasses import dataclass, field

from proxy.shared_state.lease_keeper import Lease


@dataclass(slots=True)
class StillKeeper:
    """The keeper that exchanges leases, as far as a lease can see it. `noted` are the calls that it received."""

    alone: bool = False
    lost_at: float = -math.inf
    back_at: float = -math.inf
    rejoining: bool = False
    all_reported_since: float = -math.inf
    has_answered: bool = False
    other_gateways: bool = False
    guessed: bool = False
    expected: int = 4
    rounds: int = 0
    noted: list[str] = field(default_factory=list)

    def mark_due(self, lease: Lease) -> None:
        self.noted.append("due")

    def watch(self, lease: Lease) -> None:
        self.noted.append("watch")

    def wake(self, lease: Lease) -> None:
        self.noted.append("wake")
