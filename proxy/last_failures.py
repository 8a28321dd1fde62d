"""The last failure of each deployment that speaks against it, for the operator's status page.

Never decides anything, and never holds a vendor's words: those may quote a request.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from providers.dialect import Target
from providers.failure import AGAINST_ALL, OUR_WORDS, Failure


@dataclass(frozen=True, slots=True)
class Noted:
    """What happened to a deployment, by its true name, and when, in unix seconds."""

    name: str
    when: float
    what: str


def summary(failure: Failure) -> str:
    """A failure in words of our own: its kind, the vendor's status, and the reason where the vendor did not word it."""
    status = "" if failure.status is None else f", status {failure.status}"
    reason = failure.placed if failure.ours else OUR_WORDS.get(failure.kind)
    return f"{failure.kind.value}{status}" + (f": {reason}" if reason else "")


class LastFailures:
    """By the table's name for the deployment, so that no client can fill it. `clock` gives unix seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._noted: dict[str, Noted] = {}

    @property
    def noted(self) -> Mapping[str, Noted]:
        """What is known."""
        return self._noted

    def note(self, target: Target, failure: Failure) -> None:
        """A call of a target failed."""
        if failure.kind in AGAINST_ALL:
            self._noted[target.label] = Noted(target.name, self._clock(), summary(failure))

    def keep(self, labels: Iterable[str]) -> None:
        """Forget the deployments that a new table does not have."""
        wanted = set(labels)
        self._noted = {label: noted for label, noted in self._noted.items() if label in wanted}


def latest(several: Iterable[Mapping[str, Noted]]) -> Mapping[str, Noted]:
    """What several processes have noted, of each deployment the last."""
    found: dict[str, Noted] = {}
    for those in several:
        for label, noted in those.items():
            if label not in found or found[label].when < noted.when:
                found[label] = noted
    return found
