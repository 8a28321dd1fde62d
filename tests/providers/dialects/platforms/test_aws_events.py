"""Events that are parsed from AWS event-stream frames, and errors that frames contain."""

from providers.dialects.platforms.aws_errors import BEDROCK
from providers.dialects.platforms.aws_events import EventFrames
from providers.failure import FailureKind
from tests.providers.dialects.bedrock.kit import event, frame, frames, stream
from tests.providers.kit import failure_of
from tests.support.looped import looped


def test_events_come_with_their_type_and_payload() -> None:
    data = stream("text")
    found = list(EventFrames(BEDROCK).feed(data))
    assert [name for name, _ in found][:2] == ["messageStart", "contentBlockDelta"]
    assert found[0][1] == b'{"role":"assistant","p":"abcd"}'
    parser = EventFrames(BEDROCK)
    assert [each for at in range(len(data)) for each in parser.feed(data[at : at + 1])] == found
    assert not parser.unfinished
    assert list(parser.finish()) == []


def test_the_end_of_a_body_completes_no_frame() -> None:
    parser = EventFrames(BEDROCK)
    assert list(parser.feed(event("metadata", b"{}")[:-1])) == []
    assert parser.unfinished
    assert list(parser.finish()) == []


@looped(
    ("line", "kind", "message"),
    [
        (
            'exception throttlingException {"message":"Too many requests."}',
            FailureKind.RATE_LIMITED,
            "Too many requests.",
        ),
        ("exception internalServerException no json", FailureKind.SERVER, "The upstream reported an error."),
        ("error InternalFailure It is not well.", FailureKind.SERVER, "It is not well."),
        ("error ThrottlingException Slow down.", FailureKind.RATE_LIMITED, "Slow down."),
    ],
)
def test_a_frame_that_is_no_event_is_raised_after_those_before_it(line: str, kind: FailureKind, message: str) -> None:
    parser, found = EventFrames(BEDROCK), list[tuple[str, bytes]]()
    failure = failure_of(lambda: found.extend(parser.feed(frames("text")[0] + frame(line))))
    assert (failure.kind, failure.message, failure.status) == (kind, message, None)
    assert [name for name, _ in found] == ["messageStart"]


def test_messages_of_a_kind_nobody_knows_are_events_without_a_type() -> None:
    assert list(EventFrames(BEDROCK).feed(frame("notice weather {}"))) == [("", b"{}")]


def test_bytes_that_are_no_frames_are_malformed() -> None:
    assert (
        failure_of(lambda: list(EventFrames(BEDROCK).feed(b"<html>Bad Gateway</html>"))).kind is FailureKind.MALFORMED
    )
