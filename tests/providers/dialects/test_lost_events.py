"""Characters and events of which a stream would silently lose a part, as raw bytes: parts that are joined, faults that
break the stream, and oddities that lose nothing."""

from typing import Final

from tests.providers.dialects.bedrock.kit import event as aws_event
from tests.providers.dialects.kit import chunks, text_of
from tests.providers.dialects.raw_streams import (
    CLAUDE_END,
    CLAUDE_HEAD,
    COHERE_END,
    DONE,
    OVER,
    STOP,
    WIRES,
    Wire,
    candidate,
    chat,
    claude,
    cohere,
    converse,
    ends,
    every_wire,
    gemini,
    good,
    pieces_of,
    played,
    said,
    told,
)
from tests.support.looped import looped

HIGH, LOW = rb"\ud83d", rb"\ude00"

# Characters split between two events ----- ----------------------------------------------------------------------------


@every_wire
def test_a_character_in_two_events_is_one(wire: Wire) -> None:
    parts = [b"a", b"b", b"c" + HIGH, LOW + b"d", b"e", HIGH, LOW + HIGH, LOW, rb"\ud83d\ude00", b"f"]
    events = good(wire.call(), wire.head, *map(wire.say, parts), wire.end)
    assert text_of(events) == "abc\U0001f600de\U0001f600\U0001f600\U0001f600f"


@every_wire
@looped(
    "parts",
    [
        [b"a", b"b", HIGH],
        [b"a", b"b", HIGH, b"x", LOW],
        [b"a", b"b", HIGH, HIGH, LOW],
        [b"a", b"b", LOW],
        [b"a", b"b", HIGH + b"x"],
    ],
)
def test_half_a_character_without_its_other_half_breaks_the_stream(wire: Wire, parts: list[bytes]) -> None:
    events = told(wire.call(), wire.head, *map(wire.say, parts), wire.end)
    assert text_of(events) == "ab"
    assert ends(events) == []


def test_half_a_character_at_which_the_vendor_had_to_stop_is_replaced() -> None:
    cut = STOP.replace(b'"stop"', b'"length"')
    assert text_of(good(chat(), said(b"a"), said(b"b" + HIGH), cut, DONE)) == "ab\ufffd"
    over = OVER.replace(b"STOP", b"MAX_TOKENS")
    assert text_of(good(gemini(), candidate(b"a"), candidate(b"b" + HIGH), over)) == "ab\ufffd"
    end = CLAUDE_END.replace(b"end_turn", b"max_tokens")
    assert text_of(good(chat("anthropic"), CLAUDE_HEAD, claude(b"b" + HIGH), end)) == "b\ufffd"


def test_the_halves_of_two_choices_are_told_apart() -> None:
    parts = [said(HIGH), said(b"b" + HIGH, b"1"), said(LOW), STOP, said(LOW, b"1"), STOP.replace(b":0,", b":1,"), DONE]
    events = good(chat(n=2), *parts)
    assert [text_of([c for c in chunks(events) if c.index == index]) for index in (0, 1)] == [
        "\U0001f600",
        "b\U0001f600",
    ]
    del parts[4]
    assert ends(told(chat(n=2), *parts)) == [(0, "stop")]


def test_the_arguments_of_a_call_are_joined_too() -> None:
    piece = (
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,%b"function":{%b"arguments":"%b"}}]}}]}\n\n'
    )
    pieces = [(b'"id":"c",', b'"name":"f",', rb"{\"a\":\"" + HIGH), (b"", b"", LOW + rb"\"}")]
    stop = STOP.replace(b'"stop"', b'"tool_calls"')
    events = good(chat(), *[piece % each for each in pieces], stop, DONE)
    assert "".join(call.arguments for c in chunks(events) for call in c.tool_calls) == '{"a":"\U0001f600"}'
    told(chat(), piece % pieces[0], stop, DONE)


# Other ways to lose a part silently ----- -----------------------------------------------------------------------------


def named(kind: bytes, event: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind, event)


@every_wire
@looped("junk", [b"\xef\xbb\xbf", b" ", b"\0", b"\t"])
def test_what_stands_before_the_name_of_a_field_hides_no_event(wire: Wire, junk: bytes) -> None:
    """Concatenated streams have a byte order mark there."""
    if wire.say(b"b").find(b"data: ") < 0:
        return
    parts = [wire.say(b"a"), wire.say(b"b").replace(b"data: ", junk + b"data: "), wire.say(b"c")]
    assert text_of(good(wire.call(), wire.head, *parts, wire.end)) == "abc"


def test_a_line_of_json_without_the_name_of_its_field_is_an_event() -> None:
    assert text_of(good(chat(), said(b"a"), said(b"b").removeprefix(b"data: "), said(b"c"), STOP, DONE)) == "abc"


LOST: Final[dict[str, tuple[Wire, bytes]]] = {
    "a byte that is no JSON": (WIRES["openai"], said(b"x\0y")),
    "two objects in an event": (WIRES["openai"], said(b"x")[:-2] + b"{}\n\n"),
    "two objects in two lines of data": (WIRES["openai"], said(b"x")[:-1] + said(b"y")),
    "an event called an error": (WIRES["openai"], named(b"error", b'{"message":"lost"}')),
    "an error with a detail": (WIRES["openai"], named(b"error", b'{"detail":"lost"}')),
    "a delta that is a text": (WIRES["openai"], b'data: {"choices":[{"index":0,"delta":"x"}]}\n\n'),
    "a delta that is a list": (WIRES["openai"], b'data: {"choices":[{"index":0,"delta":[{"content":"x"}]}]}\n\n'),
    "Claude's text that is a number": (
        WIRES["anthropic"],
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}\n\n',
    ),
    "Claude's text for a block that has not begun": (
        WIRES["anthropic"],
        b'data: {"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}\n\n',
    ),
    "Gemini's text that is a number": (WIRES["gemini"], candidate(b"x").replace(b'"x"', b"5")),
    "Cohere's text that is a number": (WIRES["cohere"], cohere(b"x").replace(b'"x"', b"5")),
    "Ollama's text that is a number": (WIRES["ollama"], WIRES["ollama"].say(b"x").replace(b'"x"', b"5")),
    "Bedrock's text that is a number": (
        WIRES["bedrock"],
        aws_event("contentBlockDelta", b'{"contentBlockIndex":0,"delta":{"text":5}}'),
    ),
    "calls that are no list": (WIRES["openai"], b'data: {"choices":[{"index":0,"delta":{"tool_calls":{"0":{}}}}]}\n\n'),
    "Claude's error without a type": (WIRES["anthropic"], b'data: {"error":{"message":"lost"}}\n\n'),
    "Gemini's event called an error": (WIRES["gemini"], named(b"error", b'{"message":"lost"}')),
    "Gemini's content that is a text": (WIRES["gemini"], b'data: {"candidates":[{"content":"x"}]}\n\n'),
    "Gemini's parts that are none": (WIRES["gemini"], b'data: {"candidates":[{"content":{"parts":{"text":"x"}}}]}\n\n'),
    "Gemini's part that is a text": (WIRES["gemini"], b'data: {"candidates":[{"content":{"parts":["x"]}}]}\n\n'),
    "Gemini's arguments that are a text": (
        WIRES["gemini"],
        b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":"{}"}}]}}]}\n\n',
    ),
}


@looped("name", LOST)
def test_an_event_that_would_be_lost_breaks_the_stream(name: str) -> None:
    wire, event = LOST[name]
    stream = b"".join([wire.head, wire.say(b"a"), event, wire.say(b"b"), wire.end])
    for size in pieces_of(stream):
        events, failure = played(wire.call(), stream, size)
        assert failure is not None
        assert (text_of(events), ends(events)) == ("a", [])


CALL: Final = (
    b'data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f"}}\n\n'
)
ARGUMENTS: Final = (
    b'data: {"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":"{}"}}\n\n'
)
CALL_OVER: Final = b'data: {"type":"content_block_stop","index":1}\n\n'


@looped(
    "parts",
    [
        (CALL, ARGUMENTS % 2, CALL_OVER),
        (CALL, ARGUMENTS % 1, CALL_OVER, ARGUMENTS % 1),
        (ARGUMENTS % 0, CALL, CALL_OVER),
        (CALL, CALL, ARGUMENTS % 1, CALL_OVER),
    ],
)
def test_arguments_that_belong_to_no_open_call_break_claudes_stream(parts: tuple[bytes, ...]) -> None:
    told(chat("anthropic"), CLAUDE_HEAD, *parts, CLAUDE_END)
    good(chat("anthropic"), CLAUDE_HEAD, CALL, ARGUMENTS % 1, CALL_OVER, CLAUDE_END)


def test_arguments_that_belong_to_no_open_call_break_other_streams() -> None:
    piece = b'{"contentBlockIndex":3,"delta":{"toolUse":{"input":"{}"}}}'
    told(chat("bedrock"), converse(b"a"), aws_event("contentBlockDelta", piece), WIRES["bedrock"].end)
    message = b'{"tool_calls":{"function":{"arguments":"{}"}}}'
    late = b'data: {"type":"tool-call-delta","index":3,"delta":{"message":%b}}\n\n' % message
    told(chat("cohere"), cohere(b"a"), late, COHERE_END)


def other_call(call: bytes) -> bytes:
    return CALL.replace(b'"t"', b'"%b"' % call)


def test_a_call_that_begins_within_another_breaks_the_stream() -> None:
    told(chat("anthropic"), CLAUDE_HEAD, CALL, ARGUMENTS % 1, other_call(b"u"), ARGUMENTS % 1, CALL_OVER, CLAUDE_END)
    good(chat("anthropic"), CLAUDE_HEAD, CALL, CALL_OVER, other_call(b"u"), ARGUMENTS % 1, CALL_OVER, CLAUDE_END)
    begins = b'{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"t","name":"f"}}}'
    begun, end = aws_event("contentBlockStart", begins), WIRES["bedrock"].end
    over = aws_event("contentBlockStop", b'{"contentBlockIndex":3}')
    told(chat("bedrock"), converse(b"a"), begun, begun, over, end)
    good(chat("bedrock"), converse(b"a"), begun, over, begun, over, end)
    told(chat("cohere"), cohere(b"a"), COHERE_CALL, COHERE_CALL, COHERE_CALL_OVER, COHERE_END)
    good(chat("cohere"), cohere(b"a"), COHERE_CALL, COHERE_CALL_OVER, COHERE_CALL, COHERE_CALL_OVER, COHERE_END)


COHERE_CALL: Final = (
    b'data: {"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":'
    b'{"id":"t","type":"function","function":{"name":"f","arguments":""}}}}}\n\n'
)
COHERE_PIECE: Final = (
    b'data: {"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{}"}}}}}\n\n'
)
COHERE_CALL_OVER: Final = b'data: {"type":"tool-call-end","index":0}\n\n'


def test_arguments_after_the_end_of_their_call_break_coheres_stream() -> None:
    good(chat("cohere"), cohere(b"a"), COHERE_CALL, COHERE_PIECE, COHERE_CALL_OVER, COHERE_END)
    told(chat("cohere"), cohere(b"a"), COHERE_CALL, COHERE_PIECE, COHERE_CALL_OVER, COHERE_PIECE, COHERE_END)


def test_texts_of_a_block_that_has_not_begun_break_claudes_stream() -> None:
    """Anthropic's own client raises an IndexError there."""
    told(chat("anthropic"), CLAUDE_HEAD.partition(b"\n\n")[0] + b"\n\n", claude(b"a"), claude(b"b"), CLAUDE_END)


HARMLESS_ODDITIES: Final = {
    "the end twice": (WIRES["openai"], STOP + DONE + DONE),
    "bytes behind the end": (WIRES["openai"], STOP + b"data: [DONE] x\n\n" + said(b"x")),
    "a null as the first character": (WIRES["openai"], said(rb"\u0000") + STOP + DONE),
    "another role": (WIRES["openai"], b'data: {"choices":[{"index":0,"delta":{"role":"user"}}]}\n\n' + STOP + DONE),
    "Claude's end twice": (WIRES["anthropic"], CLAUDE_END + b'data: {"type":"message_stop"}\n\n'),
    "the end of another API": (WIRES["gemini"], OVER + DONE),
    "Gemini's end twice": (WIRES["gemini"], OVER + OVER),
}


@looped("name", HARMLESS_ODDITIES)
def test_oddities_that_lose_nothing_are_no_fault(name: str) -> None:
    wire, end = HARMLESS_ODDITIES[name]
    events = good(wire.call(), wire.head, wire.say(b"a"), wire.say(b"b"), end)
    assert text_of(events).rstrip("\0") == "ab"
    assert ends(events) == [(0, "stop")]
