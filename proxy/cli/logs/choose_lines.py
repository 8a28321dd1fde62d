"""Select the log lines that are shown: all lines, or the lines of the requests that the options select."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final

from proxy.cli.terminal import USAGE, CommandError

Fields = Mapping[str, object]

_STATUS: Final = re.compile(r"[1-5]([0-9]{2}|xx)")
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h|d|w)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_TIME: Final = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z(?= )")


@dataclass(frozen=True, slots=True)
class LogsOptions:
    """The options of the command line; an option that is not given is `None`. `follow` waits for further lines."""

    team: str | None = None
    status: str | None = None
    model: str | None = None
    id: str | None = None
    since: str | None = None
    slow: str | None = None
    failed: bool = False
    follow: bool = False


@dataclass(slots=True, eq=False)
class LineChoice:
    """A filter that tests lines in order. A line without a time, such as a line of a traceback, has the time of the
    line before it."""

    since: datetime | None
    tests: tuple[Callable[[Fields], bool], ...]
    _recent: bool = field(init=False)

    def __post_init__(self) -> None:
        self._recent = self.since is None

    def takes(self, line: bytes, fields: Fields | None) -> bool:
        """Return whether a line is shown. `fields` is its content if it is a JSON object."""
        if self.since is not None:
            when = _time(line, fields)
            if when is not None:
                self._recent = when >= self.since
            if not self._recent:
                return False
        if not self.tests:
            return True
        if fields is None or "outcome" not in fields:
            return False
        for test in self.tests:  # noqa: SIM110 - a generator would cost as much as the test of a line
            if not test(fields):
                return False
        return True


def line_choice(options: LogsOptions, now: datetime) -> LineChoice:
    """Return the filter for the options. Raises CommandError for an invalid option."""
    tests: list[Callable[[Fields], bool]] = []
    if options.team is not None:
        tests.append(lambda fields: fields.get("team") == options.team)
    if options.status is not None:
        wanted = frozenset(_statuses(options.status))
        tests.append(lambda fields: not wanted.isdisjoint(_names_of(fields.get("status"))))
    if options.model is not None:
        tests.append(_of_model(options.model))
    if options.id is not None:
        tests.append(_with_id(options.id))
    if options.slow is not None:
        least = 1000 * _seconds(options.slow, "--slow")
        tests.append(lambda fields: _number(fields.get("duration_ms")) >= least)
    if options.failed:
        tests.append(lambda fields: fields.get("outcome") != "ok")
    return LineChoice(None if options.since is None else _since(options.since, now), tuple(tests))


def _statuses(text: str) -> list[str]:
    wanted = [part.strip().lower() for part in text.split(",")]
    for part in wanted:
        if not _STATUS.fullmatch(part):
            raise CommandError(f"--status takes statuses such as 429 or 5xx, not {part[:60]!a}", USAGE)
    return wanted


def _names_of(status: object) -> tuple[str, ...]:
    text = str(status) if isinstance(status, int) else ""
    return text, f"{text[:1]}xx"


def _with_id(wanted: str) -> Callable[[Fields], bool]:
    """Return a test for the request with an id. The id may be the id of the request, of its trace, or a vendor's id of
    one of its attempts."""

    def has_id(fields: Fields) -> bool:
        attempts = fields.get("attempts")
        tried = [each for each in attempts if isinstance(each, dict)] if isinstance(attempts, list) else []
        own = (fields.get("request_id"), fields.get("trace_id"), fields.get("upstream_request_id"))
        return wanted in own or any(each.get("upstream_request_id") == wanted for each in tried)

    return has_id


def _of_model(name: str) -> Callable[[Fields], bool]:
    """Return a test for requests that named a model, or that a deployment of it served."""
    patterns = name, f"{name}/*"

    def matches(fields: Fields) -> bool:
        named = [value for key in ("model", "deployment") if isinstance(value := fields.get(key), str)]
        return any(fnmatchcase(value, pattern) for value in named for pattern in patterns)

    return matches


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else -1.0


def _seconds(text: str, option: str) -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise CommandError(f"{option} takes a duration such as 500ms, 2s, 10m or 1d, not {text[:60]!a}", USAGE)
    return float(found[1]) * _SECONDS[found[2]]


def _since(text: str, now: datetime) -> datetime:
    if text[:4].isdecimal() and text[4:5] == "-":
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            raise _not_since(text) from None
        return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    if _DURATION.fullmatch(text) is None:
        raise _not_since(text)
    try:
        return now - timedelta(seconds=_seconds(text, "--since"))
    except OverflowError:
        raise CommandError(f"--since {text} is before all time", USAGE) from None


def _not_since(text: str) -> CommandError:
    return CommandError(f"--since takes 10m, 1d or a time such as 2026-11-28T05:00Z, not {text[:60]!a}", USAGE)


def _time(line: bytes, fields: Fields | None) -> datetime | None:
    if fields is None:
        found = _TIME.match(line)
        text: object = None if found is None else found[0].decode()
    else:
        text = fields.get("time")
    if not isinstance(text, str):
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when if when.tzinfo is not None else None
