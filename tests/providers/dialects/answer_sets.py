"""What a dialect's fixtures of answers and streams must show beyond the sixteen checks (`test_answer_sets.py`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind
from tests.providers.dialects.kit import fixture


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """Calls of a dialect, and the fixtures and bytes that answer each of them.

    `streams` names the streams that end well, `alike` those among them that say what the whole answer of that name
    says; both are words apart. `broken` gives for each broken stream the text before the error, the error's kind and
    its status. `bodies` and `events` make no sense, beside those that make none in any dialect; without `bodies` whole
    answers are not checked. `disguised` is an error, the name of its fixture and its kind, with status 200. `ends` says
    that a stream declares its end, `numbers_pass` that an event that is a number is passed over; `choices` is how many
    a call has.
    """

    folder: str
    calls: Sequence[UpstreamRequest]
    streams: str = ""
    alike: str = ""
    broken: Mapping[str, tuple[str, FailureKind, int | None]] = field(default_factory=dict)
    bodies: Sequence[bytes] = ()
    events: Sequence[bytes] = ()
    disguised: tuple[str, FailureKind] | None = None
    suffix: str = "sse"
    ends: bool = True
    numbers_pass: bool = False
    choices: int = 1

    def stream(self, name: str) -> bytes:
        return fixture(self.folder, "streams", f"{name}.{self.suffix}")
