"""The measured streams: one of every dialect, all with the same text, with one chunk in each event."""

import pytest

from providers.completion import Chunk
from providers.dialects.registry import DIALECTS
from providers.framing.parse_aws_eventstream import FrameParser
from tests.bench.dialects import FAMILY, STREAMS, dialect_of
from tests.bench.streams import Form, Framed, words
from tests.support.looped import looped

WHOLE = ("replicate",)
"""Dialects whose vendors send the response in one event."""


def test_every_dialect_has_a_stream() -> None:
    assert {dialect_of(name) for name in STREAMS} == DIALECTS.keys()
    assert STREAMS[FAMILY].limit == 1


@looped("name", STREAMS)
def test_a_stream_is_of_its_dialect_and_says_the_text_a_piece_at_a_time(name: str) -> None:
    stream, pieces = STREAMS[name], words(40)
    sent = stream.sent()
    assert sent.target.dialect is DIALECTS[dialect_of(name)]
    assert sent.stream
    decoder = sent.target.dialect.stream(sent)
    events = [event for piece in stream.write(pieces) for event in decoder.feed(piece)]
    events += decoder.finish()
    texts = [event.text for event in events if isinstance(event, Chunk) and event.text]
    assert decoder.complete
    assert texts[:40] == (["".join(pieces)] if name in WHOLE else pieces)


@looped("name", [name for name, stream in STREAMS.items() if isinstance(stream.write, Framed)])
def test_a_piece_of_a_framed_stream_is_one_frame(name: str) -> None:
    for piece in STREAMS[name].write(words(3)):
        assert len(list(FrameParser().feed(piece))) == 1


def test_a_text_that_is_not_in_the_form_is_told() -> None:
    with pytest.raises(AssertionError, match=r"cohere/streams/text\.sse: not once 'Hello' in event 2"):
        Form("cohere/streams/text.sse", 2, 2, "Hello")(["a"])


def test_a_text_is_as_long_as_it_is_asked_to_be() -> None:
    assert [len(words(count)) for count in (0, 1, 200)] == [0, 1, 200]
