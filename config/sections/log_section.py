"""The `server.log` and `server.payload_log` sections: the form of the log, which good requests it has, and a log of
requests and responses."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final

from pydantic import Field, model_validator
from pydantic.json_schema import JsonSchemaValue

from config.allowed_names import covers
from config.sections.limits_section import Share
from config.sections.section import Section, ShorthandSection
from config.sections.tracing_section import CollectorHeader
from config.sections.value_types import (
    DURATION_PATTERN,
    REFERENCE_PATTERN,
    BaseUrl,
    Checked,
    Duration,
    HeaderValue,
    LogFormat,
    Referable,
    Size,
    Text,
    refuse,
    to_seconds,
)

EVERY_TEAM: Final = "*"
"""The entry of the list of teams that means all teams or, if the configuration has no teams, every client."""

MOST_PATTERNS: Final = 64
LONGEST_PATTERN: Final = 1024

_FORMS: Final[JsonSchemaValue] = {
    "anyOf": [{"enum": ["json", "text"]}, {"type": "string", "pattern": REFERENCE_PATTERN}]
}


class LogSection(ShorthandSection):
    """The lines on standard output, one for each request, and on standard error. Bare text is the form."""

    short_form: ClassVar[str] = "json or text"

    form: LogFormat = Field(
        default="json",
        description="Form of the log lines. None written: text if standard output and standard error both go to a "
        "terminal, otherwise json.",
    )
    sample: Share = Field(
        default=1.0,
        description="The share of good requests that get a line, such as 10%. Each such line has the share in "
        "`sample`. A request is good if its first attempt succeeded in time; any other request always has a line.",
    )
    slow: Duration = Field(default=5.0, description="The duration from which on a good request always has a line.")

    @classmethod
    def short_form_schema(cls) -> JsonSchemaValue:
        return _FORMS

    @model_validator(mode="before")
    @classmethod
    def _from_form(cls, value: object) -> object:
        return {"form": value} if isinstance(value, str) else value


_NO_PATTERN: Final = "must be a regular expression of Python's module re"
_QUOTED_PATTERN: Final = re.compile(r"(?:(?<=range)|(?<=escape)|(?<=extension)) .*| '.*| [<\\].*", re.DOTALL)
"""Parts of the pattern that follow re's own words in its messages."""


def _reason(error: re.error) -> str:
    """Return why a pattern is invalid, without the parts that re quotes: no message repeats a part of a value."""
    return _QUOTED_PATTERN.sub("", error.msg, count=1)


def _compiles(pattern: str) -> str:
    if len(pattern) > LONGEST_PATTERN:
        raise refuse(f"must be at most {LONGEST_PATTERN} characters long")
    try:
        matches_nothing = re.compile(pattern).match("")
    except re.error as error:
        position = "" if error.pos is None else f" at position {error.pos + 1}"
        raise refuse(f"{_NO_PATTERN}: {_reason(error)}{position}") from None
    except (OverflowError, RecursionError):
        raise refuse(_NO_PATTERN) from None
    if matches_nothing:
        raise refuse("must not match an empty text")
    return pattern


Pattern = Annotated[str, Checked(_compiles)]
RotatedFiles = Annotated[int, Field(ge=0, le=1000), Referable()]


CollectorPatience = Annotated[float, Field(ge=0.1, le=10), Referable(to_seconds, DURATION_PATTERN, "duration")]


class PayloadCollectorSection(Section):
    """A collector of OpenTelemetry's logs, by OTLP over HTTP."""

    endpoint: BaseUrl = Field(description="The collector, such as http://127.0.0.1:4318; /v1/logs is added to it.")
    headers: dict[CollectorHeader, HeaderValue] = Field(
        default={}, description='Headers that are sent to it, such as authorization: "Bearer ${OTLP_TOKEN}".'
    )
    service_name: Text = Field(default="dragoman", description="The resource's service.name.")
    timeout: CollectorPatience = Field(
        default=5.0, description="How long one export may take, including retries: 100ms to 10s."
    )


@dataclass(frozen=True, slots=True)
class PayloadLogSettings:
    """The destination of payloads, a file or a collector, and their form.

    `rotate` is the size in bytes from which on a new file is begun. `most` is the most bytes of a request, and of a
    response, in an entry. `models` are patterns of the names that are written; if it is empty, every name is written.
    """

    file: Path | None
    teams: frozenset[str]
    most: int
    redact: tuple[str, ...]
    rotate: int
    keep: int
    models: tuple[str, ...] = ()
    collector: PayloadCollectorSection | None = None

    def includes_team(self, team: str) -> bool:
        """Return whether a team's payloads may be written."""
        return team in self.teams or EVERY_TEAM in self.teams

    def includes_any(self, *names: str) -> bool:
        """Return whether one of these names is written: the requested name, or the name of the target that
        responded."""
        return not self.models or any(covers(pattern, name) for pattern in self.models for name in names)


class PayloadLogSection(Section):
    """The requests and responses of the named teams, a line of JSON for each request: the request's body, and the
    response as its client got it. A stream is written as its whole text. Keys are never written. A request never waits
    for it: entries that cannot be written are counted. The entries go to a file that its owner alone can read, or to a
    collector."""

    path: Text | None = Field(
        default=None,
        description="The file, relative to this file. Workers and gateways on one machine may share it.",
    )
    otlp: PayloadCollectorSection | None = Field(
        default=None, description="Instead of a file: a collector, which gets each entry as a log record."
    )
    teams: Annotated[list[Text], Field(min_length=1)] = Field(
        description='Whose payloads: names of teams, or "*" for every team and, without teams, for every client.'
    )
    models: list[Text] = Field(
        default=[],
        description="Of which names, as in a team's `models`: routes or models that are requested, and models or "
        "vendor/* that respond. None listed: of all.",
    )
    max_bytes: Size = Field(
        default=64 * 1024,
        description="The most bytes of a request, and of a response, such as 64KiB. If one is longer, its long texts "
        "are cut.",
    )
    redact: Annotated[list[Pattern], Field(max_length=MOST_PATTERNS)] = Field(
        default=[],
        description="Regular expressions (Python's re). Their matches in a text, a number or a name are replaced by "
        "[redacted] before anything is cut; also in JSON within strings, such as arguments of tools. If they take "
        "longer than 2s for an entry, it is written without texts.",
    )
    rotate: Size = Field(default=100 * 2**20, description="The size from which on a new file is begun, such as 100MiB.")
    keep: RotatedFiles = Field(default=5, description="How many earlier files are stored, as path.1, path.2 and so on.")

    @model_validator(mode="after")
    def _one_place(self) -> "PayloadLogSection":
        if (self.path is None) == (self.otlp is None):
            raise refuse("needs path or otlp" if self.path is None else "has path and otlp: leave one of them out")
        return self

    def place(self, table: Path) -> PayloadLogSettings:
        """Return the destination and the form of the payloads. `table` is the path of the config file."""
        rules = (frozenset(self.teams), self.max_bytes, tuple(self.redact), self.rotate, self.keep)
        file = None if self.path is None else table.parent / self.path
        return PayloadLogSettings(file, *rules, tuple(self.models), self.otlp)
