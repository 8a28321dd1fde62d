"""The last failure of each deployment that counts against it, for the operator's status page.

The text is the gateway's own, because a vendor's text may quote a request.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from providers.failure import COOLDOWN_KINDS, GATEWAY_MESSAGES, Failure
from providers.target import Target


@dataclass(frozen=True, slots=True)
class Noted:
    """A failure of a deployment: the deployment's full name, the time in unix seconds, and the failure in words."""

    name: str
    when: float
    text: str


def summary(failure: Failure) -> str:
    """Return a failure in the gateway's own words: kind, the vendor's status, and the reason unless the vendor worded
    it."""
    status = "" if failure.status is None else f", status {failure.status}"
    reason = failure.with_peer if failure.ours else GATEWAY_MESSAGES.get(failure.kind)
    return f"{failure.kind.value}{status}" + (f": {reason}" if reason else "")


class LastFailures:
    """The last failures by label of the configuration. Clients cannot add labels. `clock` returns unix seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._noted: dict[str, Noted] = {}

    @property
    def noted(self) -> Mapping[str, Noted]:
        """The failures by label."""
        return self._noted

    def note(self, target: Target, failure: Failure) -> None:
        """Note that a call of a target failed."""
        if failure.kind in COOLDOWN_KINDS:
            self._noted[target.label] = Noted(target.name, self._clock(), summary(failure))

    def keep(self, labels: Iterable[str]) -> None:
        """Forget the deployments that are not among the labels of a new configuration."""
        wanted = set(labels)
        self._noted = {label: noted for label, noted in self._noted.items() if label in wanted}


def latest(several: Iterable[Mapping[str, Noted]]) -> Mapping[str, Noted]:
    """Return the latest failure of each deployment among the failures that several processes noted."""
    found: dict[str, Noted] = {}
    for mapping in several:
        for label, noted in mapping.items():
            if label not in found or found[label].when < noted.when:
                found[label] = noted
    return found
