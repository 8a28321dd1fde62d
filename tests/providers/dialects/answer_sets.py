"""The response and stream fixtures of a dialect for the checks of `test_answer_sets.py`, which go beyond the sixteen
checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind
from tests.providers.dialects.kit import fixture


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """Calls of a dialect, and the fixtures and bytes of their responses.

    `streams` names the streams that end well, and `alike` the streams among them with the same content as the
    non-streaming response of that name; both are lists of words. `broken` gives for each broken stream the text before
    the error, the error's kind and its status. `bodies` and `events` are invalid, in addition to the ones that are
    invalid in every dialect; without `bodies`, non-streaming responses are not checked. `disguised` is an error with
    status 200: the name of its fixture and its kind. `ends` is true if a stream declares its end, `numbers_pass` if an
    event that is a number is skipped. `choices` is the number of choices of a call.
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
