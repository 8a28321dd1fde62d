"""The fixtures of a dialect for the sixteen checks that every dialect must pass (`test_every_dialect.py`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from providers.dialect import UpstreamRequest
from providers.target import Target
from providers.unified_request import UnifiedRequest
from tests.providers.dialects.kit import sent_for
from tests.support.dialects import fixture_path

NO_CALLS: Final = dict.fromkeys(("tool", "tools"), "it takes raw prompts alone")
NO_FILTER: Final = "nothing there filters answers"
BROKEN: Final = "error_first error_after_text"


@dataclass(frozen=True, slots=True)
class FixtureSet:
    """A deployment, a request that it accepts, and the names of its fixtures by the case that they show.

    `whole` are bodies and `streams` streams, both under the same keys: `text`, `tool`, `tools` (two calls), `length`,
    `filtered`, `unknown` (values that no version has, and comments in between), `uncounted` (no usage), and for streams
    alone `error_first` and `error_after_text`. One mapping for both means that non-streaming requests are called as
    streams. `cannot` gives the reason why a key is in neither. `framed` puts a stream into the vendor's frames. If
    `ends_with_its_body`, the end of the body is the only end of a stream.

    `context` is the status and the body of an error with sizes, `limited` the body of a 429 if the vendor has its own
    form, and `limits` the status and the code that a client gets for it.
    """

    target: Target
    request: UnifiedRequest
    whole: Mapping[str, str]
    streams: Mapping[str, str]
    context: tuple[int, str]
    limited: str = ""
    cannot: Mapping[str, str] = field(default_factory=dict)
    framed: Callable[[bytes], bytes] = lambda data: data
    limits: tuple[int, str] = (429, "rate_limit_exceeded")
    ends_with_its_body: bool = False

    def call(self, stream: bool) -> UpstreamRequest:
        return sent_for(replace(self.request, stream=stream), self.target)

    def body(self, name: str) -> bytes:
        return self.stream(name) if self.whole is self.streams else fixture_path(self.whole[name]).read_bytes()

    def stream(self, name: str) -> bytes:
        return self.framed(fixture_path(self.streams[name]).read_bytes())

    def too_many(self) -> bytes:
        return fixture_path(self.limited).read_bytes() if self.limited else b""


def files_in(folder: str, suffix: str, **files: str) -> dict[str, str]:
    """Return the paths of fixtures in one folder with one suffix, by the case that they show."""
    return {shown: f"{folder}/{file}.{suffix}" for shown, file in files.items()}


def by_name(folder: str, suffix: str, names: str, **files: str) -> dict[str, str]:
    """Return the paths of fixtures that are named after their case (`names`), and of `files`, whose names differ from
    their case."""
    return files_in(folder, suffix, **{name: name for name in names.split()}, **files)
