"""Runs of text in a stream of typed events, and the events that end them."""

import orjson

from providers.completion import Chunk, TextRun
from providers.dialects.shared.decode_text_chunks import MarkedEvent, TextStream
from providers.framing.parse_sse import SSEParser
from providers.framing.text_frames import MARK, MAX_FORMS, MAX_LEARNED_BYTES
from providers.json_types import JsonObject
from tests.providers.dialects.shared.test_decode_stream import Words


class MarkedWords(Words):
    """A reader for which every event with only a text is a marked event."""

    marks = (b'"t":',)

    def __init__(self) -> None:
        super().__init__()
        self.asked = self.taken = 0
        self.over = False

    def marked(self, event: JsonObject) -> MarkedEvent | None:
        self.asked += 1
        return MarkedEvent("t", {"t": MARK}) if event.keys() == {"t"} else None

    def take(self, run: TextRun) -> bool:
        self.taken += len(run.literals)
        return not self.over


def say(text: str, begin: bytes = b"event: say\n") -> bytes:
    return begin + b"data: %b\n\n" % orjson.dumps({"t": text})


def fed_stream(*pieces: bytes) -> tuple[TextStream, MarkedWords]:
    """Return a stream that has been fed these chunks."""
    words = MarkedWords()
    stream = TextStream(SSEParser(), words)
    for piece in (say("first"), *pieces):
        assert list(stream.feed(piece)) is not None
    return stream, words


def run_and_rest(stream: TextStream, data: bytes) -> tuple[list[str], bytes] | None:
    found = stream.read_run(data)
    return None if found is None else ([chunk.text for chunk in found[0].chunks()], found[1])


def test_the_first_text_that_is_looked_at_begins_a_run_and_another_event_ends_it() -> None:
    stream, words = fed_stream()
    assert run_and_rest(stream, say("a") + say("é") + b"data: end\n\n") == (["a", "é"], b"data: end\n\n")
    assert run_and_rest(stream, say("b")) == (["b"], b"")
    assert (words.asked, words.taken) == (1, 3)


def test_an_event_that_came_in_part_is_of_the_run_unless_its_first_line_has_come() -> None:
    stream, _ = fed_stream(say("a")[:5])
    assert run_and_rest(stream, say("a")[5:] + say("b")) == (["a", "b"], b"")
    assert not list(stream.feed(say("c")[:15]))
    assert run_and_rest(stream, say("c")[15:]) is None
    assert list(stream.feed(say("c")[15:])) == [Chunk(text="c")]


def test_a_form_is_sought_only_in_events_with_the_mark_and_not_for_ever() -> None:
    stream, words = fed_stream()
    assert run_and_rest(stream, b'data: {"u":"a"}\n\n') is None
    assert words.asked == 0
    for _ in range(3 * MAX_FORMS):
        assert run_and_rest(stream, b'data: {"t":"a","u":1}\n\n') is None
    assert words.asked == MAX_FORMS
    assert run_and_rest(stream, say("a")) is None


def test_an_event_that_is_not_whole_or_very_long_is_not_parsed_for_a_form() -> None:
    stream, words = fed_stream()
    for data in (say("a")[:-1], say("a").replace(b"\n", b"\r\n"), say("a" * MAX_LEARNED_BYTES)):
        for _ in range(3 * MAX_FORMS):
            assert run_and_rest(stream, data) is None
    assert words.asked == 0
    assert run_and_rest(stream, say("a")) == (["a"], b"")


def test_a_form_is_learned_anew_when_it_changes() -> None:
    stream, _ = fed_stream()
    assert run_and_rest(stream, say("a")) == (["a"], b"")
    assert run_and_rest(stream, say("b", b"")) == (["b"], b"")
    assert run_and_rest(stream, say("c", b"event: other\n") + say("d")) == (["c"], say("d"))


def test_after_the_end_and_in_a_very_large_piece_there_is_no_run() -> None:
    stream, _ = fed_stream()
    assert run_and_rest(stream, say("a") * 60_000) is None
    assert run_and_rest(stream, say("a")) == (["a"], b"")
    assert not list(stream.feed(b"data: end\n\n"))
    assert run_and_rest(stream, say("a")) is None


def test_what_is_no_json_makes_no_run() -> None:
    stream, words = fed_stream()
    assert run_and_rest(stream, b'data: {"t":"\\ud83d"}\n\n') is None
    assert run_and_rest(stream, say("a")) == (["a"], b"")
    assert run_and_rest(stream, b'event: say\ndata: {"t":"\\ud83d"}\n\n') is None
    assert words.taken == 1


def test_what_has_ended_is_no_run_any_more_and_its_form_is_forgotten() -> None:
    stream, words = fed_stream()
    assert run_and_rest(stream, say("a")) == (["a"], b"")
    words.over = True
    assert run_and_rest(stream, say("b")) is None
    assert list(stream.feed(say("b"))) == [Chunk(text="b")]
    words.over = False
    assert run_and_rest(stream, say("c")) == (["c"], b"")
    assert words.asked == 2
