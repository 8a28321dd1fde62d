"""Format the lines of a log for people: the gateway's requests and messages, and any other line unchanged.

Whatever a line contains, only printable characters, tabs and the gateway's own colours reach the terminal.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from proxy.cli.terminal import Style

Fields = Mapping[str, object]
Paint = Callable[[str, Style], str]

_FIXED_FIELDS: Final = frozenset(
    {
        *("time", "level", "message", "request_id", "team", "key", "surface", "path", "client", "model", "deployment"),
        *("stream", "status", "outcome", "code", "duration_ms", "upstream_ms", "first_content_ms", "prompt_tokens"),
        *("completion_tokens", "cost_usd", "attempts", "limit", "parts_ms"),
    }
)
"""Fields of a request that are shown at a fixed position or not at all. The other fields are shown by name."""

_LEVELS: Final[Mapping[object, Style]] = {
    "info": Style.DIM,
    "warning": Style.YELLOW,
    "error": Style.RED,
    "critical": Style.RED,
}
_INDENT: Final = "    "
_MAX_VALUE: Final = 300
"""The maximum characters of one value that are shown. `--json` shows all."""


def plain(text: str, ink: Style) -> str:
    """Return the text without a style."""
    return text


def coloured(text: str, ink: Style) -> str:
    """Return the text with a style for a terminal."""
    return f"\x1b[{ink}m{text}\x1b[0m"


Below = Callable[[Fields], Iterator[str]]
"""Yields the lines below a request."""


def nothing(fields: Fields) -> Iterator[str]:
    """Yield no lines below a request."""
    yield from ()


@dataclass(frozen=True, slots=True)
class LineForm:
    """The form of printed lines. `width` is the column at which they are wrapped between two parts; 0 means no
    wrapping. `below` yields the lines below each request."""

    paint: Paint = plain
    width: int = 0
    below: Below = nothing


def parsed(line: bytes) -> Fields | None:
    """Return the content of a JSON line; `None` for any other line."""
    if not line.startswith(b"{"):
        return None
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return fields if isinstance(fields, dict) else None


def for_programs(line: bytes, fields: Fields | None) -> Iterator[str]:
    """Yield a JSON line unchanged, and nothing for any other line."""
    if fields is not None:
        yield line.decode() if line.isascii() and line.decode().isprintable() else escaped_json(line)


def escaped_json(line: bytes) -> str:
    r"""Return JSON in printable ASCII. Other characters occur in strings only, where `\\u` escapes are equivalent."""
    text = line.decode("utf-8", "backslashreplace").strip()
    return "".join([char if " " <= char <= "~" else _escape(char) for char in text])


def _escape(char: str) -> str:
    pairs = char.encode("utf-16-be")
    return "".join([f"\\u{pairs[place]:02x}{pairs[place + 1]:02x}" for place in range(0, len(pairs), 2)])


def for_people(line: bytes, fields: Fields | None, form: LineForm) -> Iterator[str]:
    """Yield the lines of output for one log line."""
    if fields is None:
        yield _harmless(line.decode("utf-8", "backslashreplace").rstrip("\r"))
    elif fields.get("message") == "request" and "outcome" in fields:
        yield from _request(fields, form)
    elif "level" in fields and isinstance(fields.get("message"), str):
        yield from _message(fields, form)
    else:
        yield _harmless(line.decode("utf-8", "backslashreplace"))


def _harmless(text: str) -> str:
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() or char == "\t" else ascii(char)[1:-1] for char in text])


def _shown(value: object) -> str:
    if isinstance(value, str):
        text = value
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        text = ",".join(value)
    else:
        text = orjson.dumps(value).decode()
    text = _harmless(text[: _MAX_VALUE + 1]).replace("\t", " ")
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."


def _when(fields: Fields) -> str:
    return _shown(fields.get("time", "")).replace("T", " ", 1).removesuffix("Z")


def _request(fields: Fields, form: LineForm) -> Iterator[str]:
    paint = form.paint
    parts = [(text, ink) for text, ink in _request_parts(fields) if text]
    yield from _broken(parts, form)
    attempts = fields.get("attempts")
    for attempt in attempts if isinstance(attempts, list) else ():
        if isinstance(attempt, dict):
            yield _INDENT + paint(_attempt(attempt), Style.YELLOW)
    for line in form.below(fields):
        yield _INDENT + _harmless(line)


def _limit(limit: Fields) -> str:
    period = f" per {_shown(limit['period'])}" if "period" in limit else " at once"
    return f"{_shown(limit.get('kind'))} of {_shown(limit.get('scope'))}: {_shown(limit.get('limit'))}{period}"


def _request_parts(fields: Fields) -> Iterator[tuple[str, Style | None]]:
    yield _when(fields), Style.DIM
    good = fields.get("outcome") == "ok"
    code = f" {_shown(fields['code'])}" if fields.get("code") else ""
    yield f"{_shown(fields.get('status'))} {_shown(fields['outcome'])}{code}", Style.GREEN if good else Style.RED
    yield "/".join(_shown(fields[name]) for name in ("team", "key") if fields.get(name)), None
    asked, answered = fields.get("model") or fields.get("path") or "", fields.get("deployment")
    yield _shown(asked) + (f" -> {_shown(answered)}" if answered and answered != asked else ""), Style.BOLD
    if isinstance(limit := fields.get("limit"), dict):
        yield _limit(limit), Style.YELLOW
    if fields.get("status") == 401 and fields.get("client"):
        yield f"from {_shown(fields['client'])}", None
    if "first_content_ms" in fields:
        yield f"first {_time(fields['first_content_ms'])}", None
    if "duration_ms" in fields:
        yield _time(fields["duration_ms"]), None
    if "prompt_tokens" in fields:
        yield f"{_shown(fields['prompt_tokens'])}+{_shown(fields.get('completion_tokens'))} tokens", None
    if isinstance(cost := fields.get("cost_usd"), int | float):
        yield f"${cost:.6g}", None
    for name in fields:
        if name not in _FIXED_FIELDS:
            yield f"{_shown(name)}={_shown(fields[name])}", Style.DIM
    yield _shown(fields.get("request_id", "")), Style.DIM


def _time(milliseconds: object) -> str:
    if not isinstance(milliseconds, int | float) or not 0 <= milliseconds < 1e12:
        return _shown(milliseconds)
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"


def _attempt(fields: Fields) -> str:
    """Return an attempt as text, for example `a/m/eu: connect (refused): Refused.`, as in the log's own text form."""
    cause = f" ({_shown(fields['cause'])})" if fields.get("cause") else ""
    status = f" {_shown(fields['status'])}" if fields.get("status") else ""
    marks = " (hedge)" if fields.get("hedge") else ""
    marks += " (maybe executed)" if fields.get("maybe_executed") else ""
    message = f": {_shown(fields['message'])}" if fields.get("message") else ""
    return f"{_shown(fields.get('deployment'))}: {_shown(fields.get('outcome'))}{cause}{status}{marks}{message}"


def _message(fields: Fields, form: LineForm) -> Iterator[str]:
    level = fields["level"]
    text = fields["message"]
    parts: list[tuple[str, Style | None]] = [
        (_when(fields), Style.DIM),
        (_shown(level), _LEVELS.get(level if isinstance(level, str) else "")),
        (_harmless(str(text)), None),
    ]
    shown_fields = {"time", "level", "message", "traceback"} | (
        {"logger"} if fields.get("logger") == "dragoman" else set()
    )
    parts += [(f"{_shown(name)}={_shown(fields[name])}", Style.DIM) for name in fields if name not in shown_fields]
    yield from _broken(parts, form)
    trace = fields.get("traceback")
    for line in trace.splitlines() if isinstance(trace, str) else ():
        yield _INDENT + _harmless(line)


def _broken(parts: list[tuple[str, Style | None]], form: LineForm) -> Iterator[str]:
    """Yield the parts, wrapped to as few lines as possible."""
    line, length = "", 0
    for text, ink in parts:
        if length and form.width and length + 2 + len(text) > form.width:
            yield line
            line, length = _INDENT, len(_INDENT)
        elif length:
            line, length = f"{line}  ", length + 2
        line += text if ink is None else form.paint(text, ink)
        length += len(text)
    yield line
