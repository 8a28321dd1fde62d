"""Conversations of many turns before deployments that cache prompt prefixes, planned without a gateway."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from providers.target import Target
from providers.unified_request import ChatPrompt, Operation, Params, UnifiedRequest
from proxy.routing.deployment_load import Load
from proxy.routing.request_plan import Plan
from proxy.routing.resolve_model import plan_for
from proxy.routing.session_load import PlacedSession, SessionLoad
from proxy.routing.snapshot import ANYONE, Snapshot, Team
from tests.proxy.kit.deployment_loads import Told

LONG = 1 << 20
"""Bytes of a body, at least as many as any `least`."""

REQUEST = UnifiedRequest(Operation.CHAT, "v/m", ChatPrompt(({"role": "user", "content": "Hi"},)), Params())


def deployments(names: Sequence[str], policy: str = "weighted", more: str = "", weights: Sequence[int] = ()) -> str:
    """Return a configuration whose model v/m has these deployments."""
    weights = weights or [1] * len(names)
    listed = ", ".join(f"{name}: {{weight: {weight}}}" for name, weight in zip(names, weights, strict=True))
    return (
        "vendors: {v: {profile: openai, api_key: k}}\n"
        f"models: {{v/m: {{policy: {policy}, {more}deployments: {{{listed}}}}}}}\n"
    )


def session_load(
    session: str, load: Load | None = None, team: Team = ANYONE, size: int = LONG, request: UnifiedRequest = REQUEST
) -> SessionLoad:
    """Return the load for a request whose client names its session. An empty name stands for no session."""
    headers = {"x-session-id": session} if session else {}
    return SessionLoad(load or Told(lambda: 0.5), team.tenant, size, headers, request)


def planned(
    table: Snapshot, session: str, load: Load | None = None, team: Team = ANYONE, name: str = "v/m"
) -> tuple[Plan, PlacedSession]:
    """Return the plan of a request of a session, and its placement."""
    own = session_load(session, load, team)
    made = plan_for(table, team, name, "openai", own)
    assert own.placed is not None
    return made, own.placed


def homes(table: Snapshot, sessions: Sequence[str], team: Team = ANYONE) -> Mapping[str, str]:
    """Return the deployment that is called first for each session while nothing else is in flight."""
    return {session: planned(table, session, team=team)[0].targets[0].deployment for session in sessions}


@dataclass(slots=True)
class PrefixCache:
    """The prompt cache of one deployment, in blocks. The least recently used blocks are evicted."""

    blocks: int
    _known: OrderedDict[tuple[str, int], None] = field(default_factory=OrderedDict)

    def read(self, conversation: str, length: int, shared: int) -> int:
        """Return how many of a prompt's first blocks are cached, and cache all of it. The first `shared` blocks are the
        same in every conversation.
        """
        prompt = [("", place) if place < shared else (conversation, place) for place in range(length)]
        cached = 0
        while cached < length and prompt[cached] in self._known:
            cached += 1
        for block in prompt:
            self._known[block] = None
            self._known.move_to_end(block)
        while len(self._known) > self.blocks:
            self._known.popitem(last=False)
        return cached


@dataclass(slots=True)
class Busy:
    """The requests in flight at deployments, by name, as a load."""

    counts: dict[str, int] = field(default_factory=dict)

    def load(self) -> Told:
        """Return the load as policies read it."""
        return Told(busy=self.counts)

    def begin(self, target: Target) -> None:
        """Count a request as in flight."""
        self.counts[target.name] = self.counts.get(target.name, 0) + 1

    def end(self, target: Target) -> None:
        """Count the end of a request."""
        self.counts[target.name] -= 1
