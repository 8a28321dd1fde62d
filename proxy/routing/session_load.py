"""The load of one request: the load of the deployments, and the request's conversation, which decides the order of a
group's members."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from providers.frozen_record import frozen
from providers.target import Target
from providers.unified_request import UnifiedRequest
from proxy.request_outcomes import AffinityOutcome
from proxy.routing.affinity_rules import AffinityRules
from proxy.routing.deployment_load import Load, MemberLoad
from proxy.routing.session_affinity import MemberGroup, MemberRanks, rank, within_load
from proxy.routing.session_key import CONTINUED, PROMPT, KeyNames, SessionKey, session_key


@frozen(eq=False)
class Placement:
    """The order of a group's members for a conversation by the rules of a name. `reach` returns the deployments of a
    member by position."""

    rules: AffinityRules
    group: MemberGroup
    ranking: MemberRanks
    reach: Callable[[int], Sequence[Target]]

    @property
    def ranked_names(self) -> list[str]:
        """The names of the members, the best first."""
        return [self.group.names[position] for position in self.ranking.ranks]

    @property
    def why_skipped(self) -> str | None:
        """The reason why the best member is not first; `None` if it is first."""
        ranking = self.ranking
        if not ranking.skipped:
            return None
        return f"{ranking.busy} requests are in flight at {self.ranked_names[0]}, more than {ranking.bound:.3g}"

    @property
    def home(self) -> Sequence[Target]:
        """The deployments of the best member."""
        return self.reach(self.ranking.ranks[0])

    def is_home(self, label: str) -> bool:
        """Return whether a deployment belongs to the best member."""
        return self._reaches(self.ranking.ranks[0], label)

    def concerns(self, label: str) -> bool:
        """Return whether a deployment belongs to any member."""
        return any(self._reaches(position, label) for position in self.ranking.ranks)

    def _reaches(self, position: int, label: str) -> bool:
        return any(target.label == label for target in self.reach(position))


class PlacedSession:
    """The order of the members of the groups behind a name for one request, the outermost group first. Without a
    conversation there are no placements, and `without` is the reason. `first` is the label of the first target."""

    __slots__ = ("_known", "first", "placements", "session", "without")

    def __init__(self) -> None:
        self.first = ""
        self.session: SessionKey | None = None
        self.without: Literal["short", "none"] = "none"
        self.placements: list[Placement] = []
        self._known: tuple[str, AffinityOutcome | None] | None = None

    @property
    def number(self) -> int | None:
        return None if self.session is None else self.session.number

    def outcome(self, label: str) -> AffinityOutcome | None:
        """Return the affinity outcome if a deployment answers. It is called after the request is planned: by the log,
        by the metrics and by the operator's page."""
        known = self._known
        if known is None or known[0] != label:
            known = self._known = label, self._outcome(label)
        return known[1]

    def _outcome(self, label: str) -> AffinityOutcome | None:
        if not self.placements:
            return self.without
        if label == self.first and not any(placement.concerns(label) for placement in self.placements):
            return None
        for place, placement in enumerate(self.placements):
            if placement.is_home(label) or (place and not placement.concerns(label)):
                continue
            return "spilled_load" if placement.ranking.skipped else "spilled_health"
        return "kept"


class SessionLoad:
    """The load of a request of a tenant. `size` is the bytes of its body, including the response that it continues.
    `continued` is the conversation of that response. The conversation is determined only when a group with affinity is
    reached."""

    __slots__ = ("_continued", "_headers", "_known", "_load", "_request", "_size", "_tenant", "placed")

    def __init__(
        self,
        load: Load,
        tenant: str,
        size: int,
        headers: Mapping[str, str],
        request: UnifiedRequest,
        continued: int | None = None,
    ) -> None:
        self._load = load
        self._tenant = tenant
        self._size = size
        self._headers = headers
        self._request = request
        self._continued = continued
        self._known: tuple[KeyNames, SessionKey | None] | None = None
        self.placed: PlacedSession | None = None

    def draw(self) -> float:
        return self._load.draw()

    def turn(self, group: str) -> int:
        return self._load.turn(group)

    def in_flight(self, target: Target) -> int:
        return self._load.in_flight(target)

    def first_byte(self, target: Target) -> float | None:
        return self._load.first_byte(target)

    def ordered(self, rules: AffinityRules, group: MemberGroup, members: MemberLoad) -> Sequence[int] | None:
        placed = self.placed
        if placed is None:
            placed = self.placed = PlacedSession()
        if self._size < rules.least:
            placed.without = "short"
            return None
        session = self.session(rules)
        if session is None:
            return None
        placed.session = session
        ranking = within_load(rank(session.number, group), group, members.in_flight, rules.load)
        placed.placements.append(Placement(rules, group, ranking, members.reach))
        return ranking.order

    def sent(self, rules: AffinityRules) -> str | None:
        """Return the digest of the conversation that vendors receive by the rules of a name; `None` if they receive
        none."""
        if not rules.send or self._size < rules.least:
            return None
        session = self.session(rules)
        return None if session is None else f"{session.number:016x}"

    def session(self, rules: AffinityRules) -> SessionKey | None:
        """Return the conversation of the request by the key of these rules; `None` if there is no conversation."""
        if self._known is None or self._known[0] is not rules.key:
            self._known = rules.key, self._named(rules.key)
        return self._known[1]

    def _named(self, key: KeyNames) -> SessionKey | None:
        found = session_key(self._tenant, key, self._headers, self._request)
        if self._continued is not None and (found is None or found.source == PROMPT):
            return SessionKey(CONTINUED, self._continued)
        return found
