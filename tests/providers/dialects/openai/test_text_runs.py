"""Runs of text in streams of the OpenAI family: when they begin and end, and the decoder's state afterwards."""

from providers.completion import Chunk, TextRun
from providers.dialects.openai.stream import OpenAIStream
from tests.providers.dialects.kit import chat_request, sent_for, target_of
from tests.support.looped import looped

HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":%d,"delta":%b,'
ROLE = HEAD % (0, b'{"role":"assistant","content":""}') + b'"finish_reason":null}]}\n\n'


def said(text: str, index: int = 0, rest: bytes = b"") -> bytes:
    return HEAD % (index, b'{"content":"%b"}' % text.encode()) + b'"finish_reason":null}]%b}\n\n' % rest


def decoder(*pieces: bytes, profile: str = "openai", **changes: object) -> OpenAIStream:
    """Return a decoder that has been fed these chunks."""
    sent = sent_for(chat_request(), target_of(profile))
    for name, value in changes.items():
        object.__setattr__(sent, name, value)
    made = OpenAIStream(sent)
    for piece in pieces:
        for _ in made.feed(piece):
            pass
    return made


BEGUN = (ROLE, said("a"), said("b"))


def run_and_rest(made: OpenAIStream, piece: bytes) -> tuple[list[str], bytes] | None:
    """Return the texts of the run at the start of a chunk, and the rest of the chunk."""
    found = made.read_run(piece)
    return None if found is None else ([chunk.text for chunk in found[0].chunks()], found[1])


def test_a_run_begins_with_the_second_text_and_ends_before_what_is_no_text() -> None:
    assert run_and_rest(decoder(ROLE), said("a")) is None
    assert run_and_rest(decoder(ROLE, said("a")), said("b")) == (["b"], b"")
    assert run_and_rest(decoder(*BEGUN), said("c") + said("d") + ROLE) == (["c", "d"], ROLE)


def test_an_event_that_came_in_part_is_of_the_run_when_its_rest_comes() -> None:
    made = decoder(*BEGUN, said("c")[:40])
    assert run_and_rest(made, said("c")[40:] + said("d")) == (["c", "d"], b"")
    assert run_and_rest(made, said("e")) == (["e"], b"")


@looped("begun", [b"event: x\n", b"data: x\n", said("c")[:-1], b"\r", b"x" * 9000])
def test_after_anything_else_that_is_begun_there_is_no_run(begun: bytes) -> None:
    assert run_and_rest(decoder(*BEGUN, begun), said("d")) is None


def test_a_run_says_what_its_events_say_of_the_answer() -> None:
    tier = b',"service_tier":"flex","system_fingerprint":"fp"'
    made = decoder(ROLE, said("a", rest=tier), said("b", rest=tier))
    assert run_and_rest(made, said("c", rest=tier)) is not None
    assert list(made.feed(said("x", rest=b',"service_tier":"auto"')))
    found = made.read_run(said("c", rest=tier))
    assert found is not None
    assert found[0] == TextRun(0, [b"c"], {}, 1, 1, "fp")
    (last,) = made.feed(HEAD % (0, b"{}") + b'"finish_reason":"stop"}]}\n\n')
    assert isinstance(last, Chunk)
    assert last.service_tier == "flex"


def test_the_length_of_the_text_is_known_after_a_run() -> None:
    made = decoder(*BEGUN)
    assert run_and_rest(made, said("é") + said("\\n") + said("cd")) is not None
    (cited,) = made.feed(said("x").replace(b'"x"', b'[{"type":"tool_reference","url":"u"}]'))
    assert isinstance(cited, Chunk)
    assert cited.extras is not None
    assert cited.extras.annotations[0]["url_citation"]["start_index"] == 6  # type: ignore[index,call-overload]


def test_what_has_to_be_changed_or_is_over_makes_no_run() -> None:
    assert run_and_rest(decoder(*BEGUN, unwrap_choice=True), said("c")) is None
    assert run_and_rest(decoder(*BEGUN, HEAD % (0, b"{}") + b'"finish_reason":"stop"}]}\n\n'), said("c")) is None
    stop = HEAD % (0, b"{}") + b'"finish_reason":"stop"}]}\n\n'
    assert run_and_rest(decoder(*BEGUN, stop, b"data: [DONE]\n\n"), said("c")) is None
    assert run_and_rest(decoder(*BEGUN), said("c") * 9000) is None


def test_another_choice_is_learned_anew() -> None:
    made = decoder(*BEGUN, said("x", 1), said("y", 1), choices=2)
    found = made.read_run(said("z", 1))
    assert found is not None
    assert found[0].index == 1


def test_vendors_that_send_lines_have_no_runs() -> None:
    lines = [event.replace(b"\n\n", b"\n") for event in BEGUN]
    assert run_and_rest(decoder(*lines, profile="deepinfra"), said("c")) is None
