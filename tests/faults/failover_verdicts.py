"""FailoverBench's verdict rules, methodology 0.1: from the record of one run to pass, partial, safe or fail.

Pure: no sockets, no clock. Every time is in seconds of the bench's full profile, however fast a run was. Source:
github.com/failoverbench/failoverbench, METHODOLOGY.md, scenarios/catalogue.yaml and failoverbench/runner.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias

End: TypeAlias = Literal["success", "error", "hang"]
Kind: TypeAlias = Literal["pass", "partial", "safe", "fail"]
Weight: TypeAlias = Literal["required", "advisory", "noted"]
"""The effect of a failed check on the verdict: a fail, a partial, or nothing."""


@dataclass(frozen=True, slots=True)
class Got:
    """The client's result of one request. `at` is when it was sent, since the run began. `complete` means that the text
    is complete, `model` and `usage` come from the response, `error` is the failure."""

    at: float
    elapsed: float
    end: End
    complete: bool = False
    model: str = ""
    usage: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """One request as a vendor received it. `at` is the time since the run began, `size` the size of its prompt.
    `answered` means that the vendor sent a response, `unfit` that it refused a conversation that ended with an
    assistant message. `late` are the seconds until then in which the bench's clock stood still. A request that waits
    also waits through them."""

    at: float
    size: int
    answered: bool
    unfit: bool = False
    late: float = 0.0

    def waited(self, other: "Tried") -> float:
        """Return the seconds since another request, with the seconds in which the bench's clock stood still."""
        return self.at + self.late - other.at - other.late


@dataclass(frozen=True, slots=True)
class Seen:
    """One run of a scenario from both sides. `spare` is the fallback's name, `None` if there was none. `outage` is how
    long the primary was down, `alive` whether a healthy request succeeded afterwards."""

    got: tuple[Got, ...]
    primary: tuple[Tried, ...]
    fallback: tuple[Tried, ...] = ()
    spare: str | None = None
    outage: float = 0.0
    alive: bool = True

    @property
    def end(self) -> End:
        ends = {each.end for each in self.got}
        return "hang" if "hang" in ends else "error" if "error" in ends else "success"

    @property
    def complete(self) -> bool:
        """Return whether every request got the complete text."""
        return all(each.complete for each in self.got)

    @property
    def elapsed(self) -> float:
        """Return the time of the longest request."""
        return max(each.elapsed for each in self.got)

    @property
    def error(self) -> str:
        """Return the first failure."""
        return next((each.error for each in self.got if each.end != "success"), "")


Rule: TypeAlias = Callable[[Seen], bool]


@dataclass(frozen=True, slots=True)
class Check:
    """One rule of a scenario. `needs_fallback` omits it if there is no fallback."""

    name: str
    rule: Rule
    weight: Weight = "required"
    needs_fallback: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a run and its reasons."""

    kind: Kind
    why: str


def verdict(checks: Sequence[Check], ideal: Literal["success", "error"], seen: Seen) -> Verdict:
    """Return the verdict on a run whose best result is `ideal`: the complete response, or the vendor's own refusal."""
    counted = [check for check in checks if seen.spare is not None or not check.needs_fallback]
    failed = [check for check in counted if not check.rule(seen)]
    if wrong := _outright(ideal, seen) or _named(failed, "required"):
        return Verdict("fail", wrong)
    if seen.end != ideal:
        return Verdict("partial", "answered around the refusal") if ideal == "error" else Verdict("safe", seen.error)
    if advisory := _named(failed, "advisory"):
        return Verdict("partial", advisory)
    return Verdict("pass", seen.error or "rescued")


def _outright(ideal: Literal["success", "error"], seen: Seen) -> str:
    """Return the failures that are a fail in every scenario."""
    if seen.end == "hang":
        return "hang"
    cut_short = ideal == seen.end == "success" and not seen.complete
    return "a truncated answer presented as a success" if cut_short else ""


def _named(failed: Sequence[Check], weight: Weight) -> str:
    return ", ".join(check.name for check in failed if check.weight == weight)


def _no_truncated_success(seen: Seen) -> bool:
    return seen.end != "success" or seen.complete


def _not_masked(seen: Seen) -> bool:
    return seen.end != "error" or not any(each.unfit for each in seen.fallback)


def _never_resent_as_it_was(seen: Seen) -> bool:
    """Check that a prompt that does not fit is sent again only after it has become smaller."""
    return all(after.size < before.size for before, after in pairwise(seen.primary))


def _reports_fallback(seen: Seen) -> bool:
    return not seen.fallback or (seen.spare or "-") in seen.got[-1].model.rpartition("/")[2]


def _answered_in_outage(seen: Seen) -> bool:
    during = [each for each in seen.got if each.at < seen.outage]
    return bool(during) and all(each.end == "success" for each in during)


def _probes_are_few(seen: Seen) -> bool:
    tries = sum(each.at < seen.outage for each in seen.primary)
    return tries <= sum(each.at < seen.outage for each in seen.got)


NO_HANG: Final = Check("no_hang", lambda seen: seen.end != "hang")
NO_TRUNCATED_SUCCESS: Final = Check("no_truncated_success", _no_truncated_success)
NO_PREFILL_MASKING: Final = Check("no_prefill_masking", _not_masked)
NO_BLIND_RETRY: Final = Check("no_blind_retry", _never_resent_as_it_was)
ALIVE_AFTER: Final = Check("alive_after", lambda seen: seen.alive)
RECOVERED_IN_PLACE: Final = Check(
    "recovered_in_place", lambda seen: seen.end == "success" and seen.complete, "advisory"
)
USAGE_REPORTED: Final = Check("usage_reported", lambda seen: seen.got[-1].usage, "advisory")
USAGE_OF_FALLBACK: Final = Check("usage_present", lambda seen: seen.got[-1].usage, "advisory", needs_fallback=True)
REPORTS_FALLBACK: Final = Check("reports_fallback_model", _reports_fallback, needs_fallback=True)
FALLBACK_ATTEMPTED: Final = Check("fallback_attempted", lambda seen: bool(seen.fallback), "noted")
SERVED_DURING_OUTAGE: Final = Check("served_during_outage", _answered_in_outage, needs_fallback=True)
PROBE_DISCIPLINE: Final = Check("probe_discipline", _probes_are_few, "noted")


def tried_at_least(name: str, count: int) -> Check:
    """Require at least `count` attempts on the primary."""
    return Check(name, lambda seen: len(seen.primary) >= count, "advisory")


def tried_at_most(count: int, name: str = "bounded_attempts", weight: Weight = "required") -> Check:
    """Require at most `count` attempts on the primary."""
    return Check(name, lambda seen: len(seen.primary) <= count, weight)


def tried_exactly(name: str, count: int) -> Check:
    return Check(name, lambda seen: len(seen.primary) == count)


def not_hammered(count: int, window: float) -> Check:
    """Require at most `count` attempts on the primary within a window after the first."""

    def rule(seen: Seen) -> bool:
        return sum(each.waited(seen.primary[0]) < window for each in seen.primary) <= count

    return Check("no_hammer", rule)


def second_try_after(seconds: float) -> Check:
    """Require a second attempt on the primary, and none before that many seconds."""

    def rule(seen: Seen) -> bool:
        return len(seen.primary) > 1 and seen.primary[1].waited(seen.primary[0]) >= seconds

    return Check("retry_after_honoured", rule, "advisory")


def within(name: str, seconds: float, weight: Weight = "required", needs_fallback: bool = False) -> Check:
    """Require that the request ended within so many seconds."""
    return Check(name, lambda seen: seen.end != "hang" and seen.elapsed <= seconds, weight, needs_fallback)


def recovered_within(seconds: float) -> Check:
    """Require that the primary served a request again this soon after it was back."""

    def rule(seen: Seen) -> bool:
        return any(each.answered and each.at - seen.outage <= seconds for each in seen.primary)

    return Check("recovered", rule, needs_fallback=True)
