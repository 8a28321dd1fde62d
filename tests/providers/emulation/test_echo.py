"""The prompt before its completion (`echo`)."""

from collections.abc import Iterable

from providers.completion import Chunk, Extras
from providers.emulation.echo import EchoPrefix
from providers.emulation.stop_strings import StopScanner
from providers.json_types import JsonObject
from tests.support.looped import looped


def run(echo: EchoPrefix, chunks: Iterable[Chunk]) -> list[Chunk]:
    return [piece for chunk in chunks for piece in echo.feed(chunk)]


def test_the_prompt_comes_with_the_first_piece_and_only_there() -> None:
    chunks = [Chunk(1, " 4", system_fingerprint="fp"), Chunk(1, "!"), Chunk(1, finish_reason="stop")]
    assert run(EchoPrefix("2+2="), chunks) == [Chunk(1, "2+2= 4", system_fingerprint="fp"), *chunks[1:]]


def test_a_whole_answer_is_prompt_and_text() -> None:
    assert run(EchoPrefix("2+2="), [Chunk(text=" 4", finish_reason="stop")]) == [
        Chunk(text="2+2= 4", finish_reason="stop")
    ]


@looped("first", [Chunk(finish_reason="length"), Chunk(reasoning="hm"), Chunk()])
def test_a_first_piece_without_text_carries_the_prompt_all_the_same(first: Chunk) -> None:
    (out,) = run(EchoPrefix("2+2="), [first])
    assert (out.text, out.finish_reason, out.reasoning) == ("2+2=", first.finish_reason, first.reasoning)


def test_an_empty_prompt_changes_nothing() -> None:
    chunks = [Chunk(text="a"), Chunk(finish_reason="stop")]
    assert run(EchoPrefix(""), chunks) == chunks


def test_a_stop_within_the_prompt_ends_nothing() -> None:
    scanner, echo = StopScanner(("\n",), keep=False), EchoPrefix("Q: 2+2\nA:")
    chunks = [Chunk(text=" 4"), Chunk(text="\nQ:")]
    out = [piece for chunk in chunks for kept in scanner.feed(chunk) for piece in echo.feed(kept)]
    assert out == [Chunk(text="Q: 2+2\nA: 4"), Chunk(finish_reason="stop", matched_stop="\n")]


def test_citations_move_by_the_prompt() -> None:
    cited: JsonObject = {"type": "url_citation", "url_citation": {"url": "u", "start_index": 0, "end_index": 2}}
    moved: JsonObject = {"type": "url_citation", "url_citation": {"url": "u", "start_index": 4, "end_index": 6}}
    chunks = [Chunk(text=" 4"), Chunk(extras=Extras(annotations=(cited,))), Chunk(extras=Extras(answer={"a": 1}))]
    assert run(EchoPrefix("2+2="), chunks) == [
        Chunk(text="2+2= 4"),
        Chunk(extras=Extras(annotations=(moved,))),
        Chunk(extras=Extras(answer={"a": 1})),
    ]
