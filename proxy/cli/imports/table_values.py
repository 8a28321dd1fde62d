"""Convert names, durations and weights of other gateways to the forms of the config file."""

import hashlib
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from config.problem import shown
from config.reserved_names import RESERVED_ROUTES, RESERVED_TEAMS
from config.sections.server_section import AllowedOrigin
from config.sections.value_types import HeaderName, HeaderValue, Text, Tokens, UrlParam
from proxy.cli.imports.foreign_section import ForeignSection

MAX_ATTEMPTS: Final = 10
MAX_SECONDS: Final = 86_400.0
MAX_WEIGHT: Final = 1_000_000

_WORD_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_ODD: Final = re.compile(r"[^A-Za-z0-9._:@/-]+")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_CREDENTIAL: Final = re.compile(r"(?i)\b(basic|bearer|digest|token|key|secret|password)\b|://[^/]*@|[?#]")
_HARMLESS_HEADERS: Final = frozenset(
    {"accept", "accept-language", "anthropic-beta", "anthropic-version", "http-referer", "openai-beta"}
    | {"openai-organization", "openai-project", "referer", "user-agent", "x-title"}
)
_WORD_LENGTH, _NAME_LENGTH = 64, 180

_TYPES: Final[Mapping[str, Any]] = {
    "header": HeaderName,
    "header value": HeaderValue,
    "url_param": UrlParam,
    "tokens": Tokens,
    "text": Text,
    "origin": AllowedOrigin,
}


@cache
def _adapter(kind: str) -> TypeAdapter[object]:
    return TypeAdapter[object](_TYPES[kind])


def fits(kind: str, value: object) -> bool:
    """Return whether a config file accepts the value; `kind` is a key of _TYPES."""
    try:
        _adapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


def word(text: str, otherwise: str) -> str:
    """Return the name of a vendor, deployment or team that is nearest to a text, or `otherwise`."""
    clean = _WORD_ODD.sub("-", text).strip("-._")[:_WORD_LENGTH].rstrip("-._")
    return clean or otherwise


def slashed_name(text: str, otherwise: str) -> str:
    """Return the name of a model or route that is nearest to a text, or `otherwise`."""
    segments = [each.strip("-") for each in _NAME_ODD.sub("-", text[:_NAME_LENGTH]).split("/")]
    return "/".join(each for each in segments if each.strip(".")) or otherwise


def route_name(text: str) -> str:
    """Return the route name that is nearest to a text and not reserved."""
    name = slashed_name(text, "route")
    return f"{name}-route" if name in RESERVED_ROUTES else name


def team_name(text: str) -> str:
    """Return the team name that is nearest to a text and not reserved."""
    name = word(text, "team")
    return f"{name}-team"[:_WORD_LENGTH] if name in RESERVED_TEAMS else name


def unused(name: str, used: Collection[str], length: int = _WORD_LENGTH) -> str:
    """Return the name, with a number or a digest appended if it is already used. At most ten look-ups are needed,
    however many names are similar."""
    if name not in used:
        return name
    # The digest differs each time, because each added name changes the number of used names.
    mark = hashlib.sha256(f"{name} {len(used)}".encode()).hexdigest()[:6]
    for candidate in (f"{name[: length - 4]}-{number}" for number in range(2, 10)):
        if candidate not in used:
            return candidate
    return f"{name[: length - 7]}-{mark}"


def variable(*parts: str) -> str:
    """Return the name of an environment variable made of words."""
    name = re.sub(r"[^A-Z0-9]+", "_", "_".join(parts).upper()).strip("_")
    return name if _VARIABLE.fullmatch(name) else f"V_{name}"[:100]


def is_variable(name: str) -> bool:
    """Return whether a config file can refer to an environment variable with this name."""
    return _VARIABLE.fullmatch(name) is not None


def seconds(value: float) -> str | None:
    """Return a duration in the form of the config file; `None` if it is out of range."""
    if not 0 < value <= MAX_SECONDS:
        return None
    if value < 1 or value != round(value, 3):
        return f"{max(round(value * 1000), 1)}ms"
    return f"{value:.3f}".rstrip("0").rstrip(".") + "s"


def attempts(section: ForeignSection, retries: str) -> int | None:
    """Return the number of attempts for a number of retries under a key of the section."""
    number = section.number(retries)
    if number is None:
        return None
    most = max(int(min(number, MAX_ATTEMPTS)), 0) + 1
    if most > MAX_ATTEMPTS:
        section.report_key(retries, f"is more than the maximum: written as {MAX_ATTEMPTS} attempts")
    return min(most, MAX_ATTEMPTS)


def duration(section: ForeignSection, key: str, unit: float = 1.0) -> str | None:
    """Return the duration under a key of the section; `unit` is the seconds of one unit of its number."""
    number = section.number(key)
    if number is None:
        return None
    written = seconds(number * unit)
    if written is None:
        section.report_key(key, "is not a duration between 1ms and 1d: not taken")
    return written


def tokens(section: ForeignSection, key: str) -> int | None:
    """Return the number of tokens under a key of the section."""
    number = section.number(key)
    if number is None:
        return None
    if number != int(number) or not fits("tokens", int(number)):
        section.report_key(key, "is not a number of tokens: not taken")
        return None
    return int(number)


def weights(values: Sequence[float]) -> list[int]:
    """Return integer weights in the same proportions. A weight above 0 stays above 0."""
    known = [max(value, 0.0) for value in values]
    top = max(known, default=0.0)
    if top <= 0:
        return [1 for _ in values]
    for scale in (1, 10, 100, 1000):
        whole = [round(value * scale) for value in known]
        if max(whole) <= MAX_WEIGHT and all(map(partial(_is_near, scale), whole, known)):
            return _reduced(whole, scale)
    return [max(round(value / top * 1000), 1) if value > 0 else 0 for value in known]


def _is_near(scale: int, whole: int, value: float) -> bool:
    return abs(whole - value * scale) < 1e-6 and (whole > 0) == (value > 0)


def _reduced(whole: list[int], scale: int) -> list[int]:
    divisor = math.gcd(*whole) if scale > 1 else 1
    return [number // divisor for number in whole]


def is_harmless_header(name: str, value: str) -> bool:
    """Return whether a header is known to carry no credential and its value does not look like one."""
    return name.lower() in _HARMLESS_HEADERS and shown(value) == value and _CREDENTIAL.search(value) is None


def joined(reasons: Iterable[str]) -> str:
    """Return the first hundred names in one line, and the number of the others."""
    known = list(reasons)
    more = f" and {len(known) - 100} more" if len(known) > 100 else ""
    return ", ".join(known[:100]) + more
