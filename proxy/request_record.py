"""The record of one request, filled as the request's steps finish and emitted once; and the ids of requests.

The record never holds a key. Only `content`, for the payload log, holds the text of a prompt or of a response.
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
"""`limited`: a limit or a budget of the team, or of every deployment that could answer, refused the request. `shed`:
the gateway refused the request because of its own load."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id(headers: Mapping[str, str]) -> str:
    """Return the client's `x-request-id` if it is fit for headers and logs, else a fresh id."""
    return given_id(headers) or fresh_id()


def given_id(headers: Mapping[str, str]) -> str | None:
    """Return the client's `x-request-id` if it is fit for headers and logs."""
    given = headers.get("x-request-id")
    return given if given is not None and _REQUEST_ID.fullmatch(given) else None


_random = random.Random()  # noqa: S311 - the number only distinguishes requests and protects nothing
_bits = _random.getrandbits
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)  # without a new seed all forked workers would draw the same ids


def fresh_id() -> str:
    """Return 24 random hex digits, without the system's random source, because its call costs about 5 us."""
    return _bits(96).to_bytes(12, "big").hex()


random_bits = _bits
"""Returns an integer with the given number of random bits, from the random source of `fresh_id`."""


@dataclass(slots=True)
class Attempt:
    """One attempt at a deployment. Times are seconds of the loop's clock.

    `deployment` is the label in the configuration and in metrics; `name` is the deployment's name if its entry is for
    any model. `outcome` is `ok` or a kind of failure. `cause` is the reason why there was no connection, and `phase` is
    the time limit that passed. `maybe_executed` is true if the vendor may bill a failed attempt. `repeats` has the
    cause of each repeated call. Until the attempt ends, `sent` is the last call and `head` the head of its response.
    `vendor_id` is the vendor's id of the request. `begun` is the time when the content of a stream began, or when the
    head of a response arrived before its body (0: neither happened). `connect` is the number of seconds that connecting
    took. `hedge` is true if the attempt began because the attempt before it was late. `number` is the attempt's
    position, from 1, in the order in which the attempts began; it is 0 if the attempts are recorded in that order.
    """

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
        """The deployment's name, including the called model."""
        return self.name or self.deployment


NO_TEAM = "anonymous"
"""The team of every request if the configuration has no teams."""

UNKNOWN_TEAM = "unknown"
"""The team of requests whose key belongs to no team."""

OTHER = "other"
"""The label value that replaces every value that is not a name in the configuration."""

VENDOR_ID = "x-dragoman-upstream-request-id"
"""The header with the vendor's id of the request, which the vendor's support needs."""


class RequestContent(Protocol):
    """The content of a request and of its response, if the operator has it logged."""

    answer: bytes | None

    def add_run(self, run: TextRun) -> None:
        """Add a run that was sent to the client."""

    def add_chunk(self, chunk: Chunk) -> None:
        """Add a chunk of a choice that was sent to the client."""


class ResponseHook(Protocol):
    """Observes the bodies of responses. `proxy.hooks.request_hook.RequestHook` is one."""

    def shown(self, record: "RequestRecord", body: bytes) -> None:
        """Observe the body of a non-streaming response."""


class TargetHold(Protocol):
    """The reservation of a call in the limits of its deployment."""

    @property
    def priced(self) -> bool:
        """Whether at least one of the limits counts the cost of the call."""

    def settle(self, tokens: int, cost: int | None) -> None:
        """Replace the reserved amount by the used amount."""


class HeldLimits(Protocol):
    """The reservations of a request in the limits of its team and of the deployment that answers it. `soonest` is the
    refusal by a deployment's limit that ends first; `None` if no deployment was at a limit. `ended` is true once
    nothing is reserved any longer."""

    ended: bool
    soonest: Failure | None

    @property
    def tokens(self) -> int:
        """The number of reserved tokens."""

    def cost_at(self, price: Price | None) -> int | None:
        """Return the cost of the reserved tokens at a price, in billionths of a USD; `None` if the cost is unknown."""

    def hold_target(self, reservation: TargetHold) -> None:
        """Hold a reservation in the limits of a deployment too."""

    def leave_target(self) -> None:
        """Give back the reservation of the deployment that was called before, because another one is to be called."""

    def end(self, record: "RequestRecord") -> None:
        """Replace the reserved amounts by the used amounts. Further calls have no effect."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers of the response that report the limits."""

    def header_lines(self) -> str:
        """Return the headers of `headers` as lines of an HTTP head."""


class PlacedRequest(Protocol):
    """The order of the targets of the groups behind a name, as chosen for the conversation of a request."""

    @property
    def number(self) -> int | None:
        """The conversation, or `None` if the order does not depend on one."""

    def outcome(self, label: str) -> AffinityOutcome | None:
        """Return the affinity outcome if this deployment answers; `None` if it is a first target without affinity."""


@dataclass(slots=True)
class RequestRecord:
    """One request of a client, including all its attempts. Times are seconds.

    The labels `team`, `surface` and `model` only hold names of the configuration. For the log, `asked` is the client's
    model string and `key` the configured name of the key. `key_label` identifies the key in the ledger and in limits,
    even if the key has no name. `user` is the end user that the client names. `tags` are the team's tags in the
    configuration with which the request began. `called` is the client-visible name of the deployment called last
    (`None` before the first call), and `price` is that deployment's price (`None` if unknown). `routed` is the model
    name to which the team's spent budget sent the request. `placed` is set if the name has affinity; `session` is the
    digest of the conversation that vendors receive. `hedge` is the outcome of a late request whose name has second
    attempts. `aside` is true if no deployment is called: for lists, usage, stored responses, counts, and unknown paths.

    `usage` is the usage of the response, `billed` the sum over several calls if that differs. `paid` is a usage with
    its cost, set when a budget reads the cost or the request is settled. `unanswered` are the usages, with their
    prices, of calls whose responses the client did not get, until they are added to `billed`. `lacking` is the part of
    the usage of all calls that has no known price; it is set together with `paid`, or by `settle`. `held` are the
    reservations of the request in limits. `limit` is the last limit that refused the request: a limit of its team or of
    a deployment. `max_tokens` is set if the gateway lowered the limit to the space left in the context window. `waited`
    is the time spent waiting for the upstream. `client_waited` is the time spent waiting for the client to send its
    body or to read. `limit_waited` is the time spent waiting for a limit. `marks` are waits that most requests do not
    have. `first_content` is the time of the first content.

    `cache` is set if the request was looked up in the response cache. `passed` are the headers of the vendor's response
    that are sent on to the client. `guarded` are the changes by plugins, `None` if no guard applies to the request.
    `receipt` is set if the client gets one. `keep_alives` counts the keep-alives that the client got. `hooks` are the
    team's hooks until the request has ended. `hook_lines` are the lines that the hooks add to the head of the response.
    `private` is true if a hook stores part of the response, because a cached response would lack that part. `heavy` are
    the large objects of a heavy request or response, which are freed off the event loop. `trace` is the trace that the
    request is part of, `None` if requests are not traced; `sampled` is the same trace if its spans are reported, else
    `None`. `sample` is the share of requests that are logged (`None`: the log line stands for this request alone).
    `content` is the additional content for the payload log.
    """

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
        """The affinity outcome of the request; `None` if its name has no affinity, or no deployment was called."""
        placed, attempts = self.placed, self.attempts
        return placed.outcome(attempts[-1].deployment) if placed is not None and attempts else None

    @property
    def from_cache(self) -> bool:
        """Whether the response came from the response cache. A cached response costs nothing."""
        return self.cache is not None and self.cache.result != "miss"

    @property
    def owner(self) -> str:
        """The owner of a fair share of common resources: the team, or the client's address if there are no teams."""
        return self.client if self.team == NO_TEAM else self.team

    @property
    def deployment(self) -> str | None:
        """The configuration's name for the deployment of the last attempt."""
        return self.attempts[-1].deployment if self.attempts else None

    @property
    def answered_by(self) -> str | None:
        """The full name, for the log, of the deployment that produced the response, cached or of the last attempt."""
        if self.cache is not None and self.from_cache:
            return self.called
        return (self.attempts[-1].name or self.attempts[-1].deployment) if self.attempts else None

    @property
    def repeats(self) -> list[str]:
        """The causes of all calls that were repeated within an attempt."""
        return [cause for attempt in self.attempts for cause in attempt.repeats]

    @property
    def counted(self) -> Usage | None:
        """The billed usage of all calls, for the log, the ledger, sinks, spans and metrics; `None` if it is unknown."""
        return self.billed or self.usage

    @property
    def cost(self) -> float | None:
        """The cost in USD, as far as it is known; `None` if the price or the usage is unknown."""
        usage = self.counted
        if self.paid is not None and self.paid[0] is usage:
            return self.paid[1]
        return None if self.price is None else cost(self.price, usage)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The kinds of usage without a known price, by the names of `providers.pricing.unpriced`."""
        return unpriced(self.price, self.counted) if self.lacking is None else self.lacking

    def settle(self) -> float | None:
        """Compute and return the cost of the finished request, and compute its part without a price, for all
        observers."""
        usage = self.counted
        if usage is not None:
            self.lacking, self.paid = self.unpriced, (usage, self.cost)
        return self.cost

    @property
    def duration(self) -> float:
        """Seconds from the first byte that was read to the last byte that was written."""
        return self.finished - self.started

    @property
    def passed_on(self) -> Mapping[str, str]:
        """The vendor's headers for the client: whether to retry, and limits unless the gateway reports its own."""
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
        """The vendor's id of the last attempt; empty if there is no such id."""
        return self.attempts[-1].vendor_id if self.attempts else ""

    def note_waited(self, seconds: float) -> None:
        """Add a wait for the vendor."""
        self.waited += seconds
        if seconds > STALL:
            self.note_stall(seconds)

    def note_stall(self, seconds: float) -> None:
        """Note a silence of the vendor that was longer than STALL. Silence before the first content is not noted."""
        if self.first_content is not None:
            waits = self.waits()
            waits.stalls += 1
            waits.stalled += seconds

    def waits(self) -> WaitMarks:
        """Return the marks of the request's waits, for the caller to add to."""
        if self.marks is None:
            self.marks = WaitMarks()
        return self.marks

    def note_unanswered(self, usage: Usage) -> None:
        """Count the usage of a call of the running attempt whose response the client does not get."""
        self.unanswered = (*self.unanswered, (usage, self.price))

    def bill_unanswered(self) -> None:
        """Bill the usage of calls whose responses the client did not get, each at its own deployment's price."""
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
        """Note that a call of the running attempt is repeated."""
        attempt = self.attempts[-1]
        attempt.repeats = (*attempt.repeats, cause)
