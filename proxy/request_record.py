"""The record of one request, filled as its steps finish and emitted once, and the ids of requests.

Never holds a key, and a prompt or an answer's text only in `content`, for the payload log.
"""

import os
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from providers.completion import Chunk, TextRun, Usage
from providers.dialect import UpstreamRequest
from providers.emulation.merge_choices import total_usage
from providers.failure import Failure
from providers.pricing import Price, cost, unpriced
from proxy.request_outcomes import (
    STALL,
    AffinityOutcome,
    CacheUse,
    GuardMarks,
    HedgeOutcome,
    Receipt,
    RefusingLimit,
    WaitMarks,
)
from proxy.trace_context import SampledTrace, Trace

Outcome = Literal[
    "ok", "client_error", "upstream_error", "timeout", "truncated", "client_gone", "denied", "limited", "shed", "error"
]
"""`limited` is a request beyond a limit or a budget of its team, or of all deployments that could answer; `shed` is one
that the gateway refused because of its own load."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id(headers: Mapping[str, str]) -> str:
    """Return the client's `x-request-id` if it is fit for headers and logs, else a fresh id."""
    return given_id(headers) or fresh_id()


def given_id(headers: Mapping[str, str]) -> str | None:
    """Return the client's `x-request-id` if it is fit for headers and logs."""
    given = headers.get("x-request-id")
    return given if given is not None and _REQUEST_ID.fullmatch(given) else None


_random = random.Random()  # noqa: S311 - tells requests apart, guards nothing
_bits = _random.getrandbits
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)  # else all workers would draw the same ids


def fresh_id() -> str:
    """Return 24 random hex digits. Not from the system's random source, whose system call costs about 5 us."""
    return _bits(96).to_bytes(12, "big").hex()


random_bits = _bits
"""Returns a number of so many random bits, from the source of `fresh_id`."""


@dataclass(slots=True)
class Attempt:
    """One attempt at a deployment. `deployment` is its label in the table and in metrics; `name` its name where the
    table's entry is for any model. `outcome` is `ok` or a failure kind, `cause` why there was no connection; times are
    seconds of the loop's clock. `maybe_executed` says that the vendor may bill an attempt that failed. `repeats` has
    the cause of each call of the attempt that was made again, `sent` the call that was made last and `head` the head of
    its response, until the attempt ends. `vendor_id` is the vendor's id of the request. `begun` is when the content of
    a stream began, or when the head of a response came whose body followed later (0: neither), `connect` how long
    making a connection took, `phase` the time limit that passed. `hedge` says that it began because the one before
    was late. `number` is its place in the order in which attempts began, from 1; 0 if that is the order in which they
    are recorded."""

    deployment: str
    started: float
    finished: float = 0.0
    outcome: str = "ok"
    status: int | None = None
    message: str | None = None
    maybe_executed: bool = False
    cause: str | None = None
    name: str = ""
    repeats: tuple[str, ...] = ()
    vendor_id: str = ""
    begun: float = 0.0
    connect: float = 0.0
    phase: str = ""
    hedge: bool = False
    number: int = field(default=0, compare=False)
    head: bytes = field(default=b"", repr=False, compare=False)
    sent: UpstreamRequest | None = field(default=None, repr=False, compare=False)

    @property
    def full_name(self) -> str:
        """The deployment's name with the model that was called."""
        return self.name or self.deployment


NO_TEAM = "anonymous"
"""The team of every request where the table has no teams."""

UNKNOWN_TEAM = "unknown"
"""The team of requests whose key belongs to no team."""

OTHER = "other"
"""Stands for every label value that is not a name of the table."""


VENDOR_ID = "x-dragoman-upstream-request-id"
"""The header with the vendor's id of the request, which the vendor's support needs."""


class RequestContent(Protocol):
    """What a request asked and was answered, where the operator has it logged."""

    answer: bytes | None

    def add_run(self, run: TextRun) -> None:
        """Add a run that the client was sent."""

    def add_chunk(self, chunk: Chunk) -> None:
        """Add what the client was sent of a choice."""


class ResponseHook(Protocol):
    """Observes the bodies of responses. `proxy.hooks.request_hook.RequestHook` is one."""

    def shown(self, record: "RequestRecord", body: bytes) -> None:
        """Observe the body of a response that is no stream."""


class TargetHold(Protocol):
    """What a call holds of the limits of its deployment."""

    @property
    def priced(self) -> bool:
        """Whether what it costs counts for one of them."""

    def settle(self, tokens: int, cost: int | None) -> None:
        """Take what was used instead of what was reserved."""


class HeldLimits(Protocol):
    """What a request holds of the limits of its team and of the deployment that answers it. `soonest` says what
    refused of the deployments that were at a limit, by the one that may be asked first, None where none was; `ended`
    says that nothing is held any more."""

    ended: bool
    soonest: Failure | None

    @property
    def tokens(self) -> int:
        """The tokens that are reserved."""

    def cost_at(self, price: Price | None) -> int | None:
        """Return what the reserved tokens cost at a price, in billionths of a USD; `None` if that is unknown."""

    def hold_target(self, reservation: TargetHold) -> None:
        """Hold a deployment's units too."""

    def leave_target(self) -> None:
        """Give back what is held of the deployment that was asked before: another is to be asked."""

    def end(self, record: "RequestRecord") -> None:
        """Take what was used instead of what was reserved, once."""

    def headers(self) -> Mapping[str, str]:
        """Return what the headers of the answer say of the limits."""

    def header_lines(self) -> str:
        """Return the same as lines of a head."""


class PlacedRequest(Protocol):
    """How the members of the groups behind a name were ordered for the conversation of a request."""

    @property
    def number(self) -> int | None:
        """The conversation, `None` if the request was not placed by one."""

    def outcome(self, label: str) -> AffinityOutcome | None:
        """Return what became of the request that the deployment with this label answered; `None` if that is the first
        target, and not one of a group with affinity."""


@dataclass(slots=True)
class RequestRecord:
    """One request of a client, all its attempts included. Times are seconds.

    The labels `team`, `surface` and `model` hold names of the table only. For the log, `asked` is the client's model
    string and `key` the table's name for the key. `called` is the client-visible name of the deployment called last
    (None before the first call), `price` its price (None = unknown). `usage` is that of the answer, `billed` the sum
    over several calls where that differs. `max_tokens` is set where the gateway lowered the limit to what the context
    window leaves. `user` is who the client says the request is for, `routed` the name that answers because of the
    team's budget, `held` what the request holds of limits. `key_label` stands for the key in the ledger and in limits,
    also where the table has no name for it. `waited` is time spent waiting for the upstream, `client_waited` for the
    client to send its body or to read, `limit_waited` for a limit, `first_content` when content began. `cache` is set
    where the request was one for the answer cache. `trace` is the trace that it is part of, None while requests are not
    traced; `sampled` is the same where its spans are told, else None. `sample` is the share of requests that this one's
    line stands for (None: itself alone), `content` what the payload log gets besides. `guarded` is what plugins
    changed, None where no guard holds for the request. `paid` is a usage with its cost, if a budget has asked for it or
    the request is settled. `unanswered` are the usages, with their prices, of calls whose responses the client did not
    get, until they are in `billed`, and `lacking` the part of all calls without a known price, from then or `settle`
    on. `tags` are the team's in the table that the request began with; `aside` is set if no deployment is called: for
    lists, usage, stored responses, counts, and unknown paths. `heavy` are the large objects of a heavy request or
    response, to be freed off the event loop. `passed` are headers of the vendor's response that go on to the client.
    `limit` is the last limit that refused it, its own or a deployment's. `placed` is set if the name has affinity,
    `session` is the digest of the conversation that vendors receive. `marks` are waits that most requests do not have.
    `receipt` is set if the client gets one. `keep_alives` counts the keep-alives that the client got. `hedge` is the
    outcome of a late request whose name has second attempts. `hooks` are those of the team until the request has ended,
    `hook_lines` are lines that they add to the head of the response. `private` is set by a hook that stores part of the
    response for the client's next request: a cached response would lack that."""

    request_id: str
    started: float
    surface: str
    path: str
    client: str = ""
    team: str = UNKNOWN_TEAM
    key: str = ""
    asked: str = ""
    model: str = OTHER
    stream: bool = False
    status: int = 0
    code: str | None = None
    outcome: Outcome = "ok"
    attempts: list[Attempt] = field(default_factory=list)
    called: str | None = None
    usage: Usage | None = None
    billed: Usage | None = None
    price: Price | None = None
    max_tokens: int | None = None
    waited: float = 0.0
    client_waited: float = 0.0
    first_content: float | None = None
    finished: float = 0.0
    chunks: int = 0
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    user: str | None = None
    routed: str | None = None
    held: HeldLimits | None = None
    key_label: str = ""
    limit_waited: float = 0.0
    cache: CacheUse | None = None
    trace: Trace | None = None
    sampled: SampledTrace | None = None
    sample: float | None = None
    content: RequestContent | None = None
    guarded: GuardMarks | None = None
    paid: tuple[Usage, float | None] | None = None
    tags: Mapping[str, str] | None = None
    aside: bool = False
    unanswered: tuple[tuple[Usage, Price | None], ...] = ()
    lacking: tuple[str, ...] | None = None
    heavy: list[object] = field(default_factory=list, repr=False, compare=False)
    passed: Mapping[str, str] | None = None
    limit: RefusingLimit | None = None
    placed: PlacedRequest | None = None
    session: str | None = None
    marks: WaitMarks | None = None
    receipt: Receipt | None = None
    keep_alives: int = 0
    hedge: HedgeOutcome | None = None
    hooks: tuple[ResponseHook, ...] = field(default=(), repr=False, compare=False)
    hook_lines: str = ""
    private: bool = False

    @property
    def affinity(self) -> AffinityOutcome | None:
        """What became of the request's affinity; `None` if its name has none, or no deployment was called."""
        placed, attempts = self.placed, self.attempts
        return placed.outcome(attempts[-1].deployment) if placed is not None and attempts else None

    @property
    def from_cache(self) -> bool:
        """Whether the answer came out of the answer cache, so that nobody is to be paid for it."""
        return self.cache is not None and self.cache.result != "miss"

    @property
    def owner(self) -> str:
        """Whose fair share of common resources it uses: the team, or the client's address where there are no teams."""
        return self.client if self.team == NO_TEAM else self.team

    @property
    def deployment(self) -> str | None:
        """The table's name for the deployment of the last attempt."""
        return self.attempts[-1].deployment if self.attempts else None

    @property
    def answered_by(self) -> str | None:
        """The full name of the deployment whose answer was given, for the log: that of the last attempt, or out of the
        answer cache the one that gave it before."""
        if self.cache is not None and self.from_cache:
            return self.called
        # As `full_name`, without its call: every line of the log asks.
        return (self.attempts[-1].name or self.attempts[-1].deployment) if self.attempts else None

    @property
    def repeats(self) -> list[str]:
        """The cause of each call that was made again within an attempt."""
        return [cause for attempt in self.attempts for cause in attempt.repeats]

    @property
    def counted(self) -> Usage | None:
        """The billed usage of all calls of the request, which the log, the payload log, the ledger, sinks, spans and
        metrics show. `None` if it is unknown."""
        return self.billed or self.usage

    @property
    def cost(self) -> float | None:
        """USD, as far as it is known; None where the price or the usage is unknown."""
        usage = self.counted
        if self.paid is not None and self.paid[0] is usage:
            return self.paid[1]
        return None if self.price is None else cost(self.price, usage)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """What the request used at a price that is not known, as `providers.pricing.unpriced` calls it."""
        return unpriced(self.price, self.counted) if self.lacking is None else self.lacking

    def settle(self) -> float | None:
        """Compute the cost of the finished request and its part without a known price once, for all observers; return
        the cost."""
        usage = self.counted
        if usage is not None:
            self.lacking, self.paid = self.unpriced, (usage, self.cost)
        return self.cost

    @property
    def duration(self) -> float:
        """Seconds from the first byte read to the last one written."""
        return self.finished - self.started

    @property
    def passed_on(self) -> Mapping[str, str]:
        """The vendor's headers that go on to the client: whether to try again, and its limits, unless the gateway
        reports limits of its own under the same names."""
        passed = self.passed
        if not passed:
            return {}
        if self.held is None or not any(name.startswith("x-ratelimit") for name in self.held.headers()):
            return passed
        return {name: value for name, value in passed.items() if not name.startswith("x-ratelimit")}

    def note_head(self, head: bytes) -> None:
        """Note the head of the response to a call of the running attempt."""
        if self.attempts:
            self.attempts[-1].head = head

    @property
    def vendor_id(self) -> str:
        """The vendor's id of the last attempt, empty without one."""
        return self.attempts[-1].vendor_id if self.attempts else ""

    def note_waited(self, seconds: float) -> None:
        """Note that the vendor was waited for."""
        self.waited += seconds
        if seconds > STALL:
            self.note_stall(seconds)

    def note_stall(self, seconds: float) -> None:
        """Note that the vendor sent nothing for longer than STALL, unless that was before the first content."""
        if self.first_content is not None:
            waits = self.waits()
            waits.stalls += 1
            waits.stalled += seconds

    def waits(self) -> WaitMarks:
        """Return the marks of the request's waits, to add to them."""
        if self.marks is None:
            self.marks = WaitMarks()
        return self.marks

    def note_unanswered(self, usage: Usage) -> None:
        """Count what a call of the running attempt used although its answer is not given to the client."""
        self.unanswered = (*self.unanswered, (usage, self.price))

    def bill_unanswered(self) -> None:
        """Bill what calls used whose answers were not given, each at the price of its own deployment."""
        lacking = [*self.unpriced, *(each for usage, price in self.unanswered for each in unpriced(price, usage))]
        own, costs = self.counted, [self.cost]
        usages = [usage for usage, _ in self.unanswered]
        costs += [None if price is None else cost(price, usage) for usage, price in self.unanswered]
        self.billed, self.unanswered = total_usage(usages if own is None else [own, *usages]), ()
        known = [each for each in costs if each is not None]
        self.lacking = tuple(dict.fromkeys(lacking))
        if self.billed is not None:
            self.paid = self.billed, sum(known) if known else None

    def repeated(self, cause: str) -> None:
        """Note that a call of the running attempt is made again."""
        attempt = self.attempts[-1]
        attempt.repeats = (*attempt.repeats, cause)
