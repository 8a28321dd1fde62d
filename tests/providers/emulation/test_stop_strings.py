"""The search for stop strings in one choice, in whole texts and in chunks."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import SupportsIndex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from providers.completion import Chunk, ContentLogprobs, Extras, LegacyLogprobs, Logprobs, TokenLogprob, ToolCallDelta
from providers.emulation.logprob_slices import join_logprobs
from providers.emulation.stop_strings import StopScanner
from tests.support.looped import looped

ENDED = Chunk(finish_reason="length", native_finish_reason="max_tokens")

# Two letters only, so that stops overlap each other and themselves in nearly every text.
texts = st.text("ab", max_size=40)
stops_of_any_kind = st.lists(st.text("ab", min_size=1, max_size=5), max_size=4).map(tuple)
cuts = st.lists(st.integers(0, 40), max_size=8)


def pieces(text: str, places: Iterable[int]) -> list[str]:
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def streamed(parts: Sequence[str], finish: Chunk = ENDED) -> list[Chunk]:
    return [*(Chunk(text=part) for part in parts), finish]


def run(scanner: StopScanner, chunks: Iterable[Chunk]) -> list[Chunk]:
    return [piece for chunk in chunks for piece in scanner.feed(chunk)]


def text_of(chunks: Iterable[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def tokens_of(chunks: Iterable[Chunk]) -> Logprobs | None:
    return join_logprobs([chunk.logprobs for chunk in chunks if chunk.logprobs is not None])


def first_stop(text: str, stops: tuple[str, ...]) -> tuple[int, str] | None:
    """Return the expected result for a whole text: the stop that begins first, and the shortest if several begin
    there."""
    found = [(text.find(stop), len(stop), stop) for stop in stops if stop in text]
    return (min(found)[0], min(found)[2]) if found else None


@given(texts, stops_of_any_kind, cuts, st.booleans())
@example("abaab", ("ab", "aab"), [], False)
@example("aba", ("abab", "b"), [], False)
@example("ab", ("ab", "a"), [], True)
@example("aabaabab", ("aabab",), [4], False)
def test_the_answer_is_that_of_the_whole_text_however_it_is_cut(
    text: str, stops: tuple[str, ...], places: list[int], keep: bool
) -> None:
    scanner = StopScanner(stops, keep)
    out = run(scanner, streamed(pieces(text, places)))
    found = first_stop(text, stops)
    if found is None:
        assert text_of(out) == text
        assert (out[-1].finish_reason, out[-1].native_finish_reason) == ("length", "max_tokens")
        assert not scanner.done
    else:
        place, stop = found
        assert text_of(out) == text[: place + (len(stop) if keep else 0)]
        assert (out[-1].finish_reason, out[-1].native_finish_reason, out[-1].matched_stop) == ("stop", None, stop)
        assert scanner.done
    assert [chunk.finish_reason is not None for chunk in out] == [False] * (len(out) - 1) + [True]


@given(texts, stops_of_any_kind, cuts)
def test_only_what_may_become_a_stop_waits(text: str, stops: tuple[str, ...], places: list[int]) -> None:
    scanner = StopScanner(stops, keep=False)
    sent = given_text = ""
    for part in pieces(text, places):
        sent += text_of(scanner.feed(Chunk(text=part)))
        given_text += part
        if first_stop(given_text, stops) is not None:
            return
        begun = [
            given_text[start:]
            for start in range(len(given_text) + 1)
            if any(len(stop) > len(given_text) - start and stop.startswith(given_text[start:]) for stop in stops)
        ]
        assert sent + (begun[0] if begun else "") == given_text


@pytest.mark.parametrize("keep", [False, True])
def test_a_whole_answer_is_one_chunk(keep: bool) -> None:
    out = run(StopScanner(("END",), keep), [Chunk(3, "one END two", "length", "max_tokens", system_fingerprint="fp")])
    assert out == [Chunk(3, "one END" if keep else "one ", "stop", matched_stop="END", system_fingerprint="fp")]


def test_a_later_stop_waits_for_the_one_that_begins_before_it() -> None:
    for end, text, stop in [("d", "", "abcd"), ("x", "a", "b")]:
        scanner = StopScanner(("abcd", "b"), keep=False)
        assert run(scanner, [Chunk(text="abc")]) == []
        assert run(scanner, [Chunk(text=end)]) == [Chunk(text=text, finish_reason="stop", matched_stop=stop)]


def test_a_stop_that_waited_for_another_is_found_when_the_text_ends() -> None:
    assert run(StopScanner(("abcd", "b"), keep=True), [Chunk(text="abc"), ENDED]) == [
        Chunk(text="ab", finish_reason="stop", matched_stop="b")
    ]


def test_after_the_stop_nothing_comes() -> None:
    scanner = StopScanner(("b",), keep=False)
    assert len(run(scanner, [Chunk(text="ab")])) == 1
    assert run(scanner, [Chunk(text="more"), Chunk(reasoning="hm"), ENDED]) == []


def test_what_the_vendor_says_at_a_natural_end_is_kept() -> None:
    end = Chunk(text="a", finish_reason="stop", matched_stop="its own")
    assert run(StopScanner(("b",), keep=False), [end]) == [end]


def test_without_stops_everything_passes() -> None:
    chunks = streamed(["a", "b"])
    assert run(StopScanner((), keep=False), chunks) == chunks


def test_an_empty_stop_is_no_stop() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        StopScanner(("a", ""), keep=False)


def test_a_fingerprint_is_not_lost_with_a_chunk_that_waits() -> None:
    out = run(StopScanner(("ab",), keep=False), [Chunk(text="a", system_fingerprint="fp"), Chunk(text="c")])
    assert out == [Chunk(text="ac", system_fingerprint="fp")]


# Fields other than text.


def test_a_signature_is_not_lost_with_a_chunk_that_waits() -> None:
    chunks = run(StopScanner(("ab",), keep=False), [Chunk(text="a", signature="c2ln"), Chunk(finish_reason="stop")])
    assert chunks == [Chunk(signature="c2ln"), Chunk(text="a", finish_reason="stop")]


def test_reasoning_is_not_searched_and_comes_after_the_text_before_it() -> None:
    scanner = StopScanner(("ab",), keep=False)
    chunks = [Chunk(reasoning="ab"), Chunk(text="xa"), Chunk(reasoning="b"), Chunk(text="b"), ENDED]
    assert run(scanner, chunks) == [
        Chunk(reasoning="ab"),
        Chunk(text="x"),
        Chunk(text="a"),
        Chunk(reasoning="b"),
        Chunk(text="b"),
        ENDED,
    ]


def test_reasoning_in_the_chunk_of_the_stop_is_kept() -> None:
    out = run(StopScanner(("b",), keep=False), [Chunk(text="ab", reasoning="so", finish_reason="length")])
    assert out == [Chunk(text="a", reasoning="so", finish_reason="stop", matched_stop="b")]


def test_a_refusal_given_as_text_is_not_searched() -> None:
    refusal = Chunk(text="no b", refusal="no b", finish_reason="stop")
    assert run(StopScanner(("b", "ac"), keep=False), [Chunk(text="a"), refusal]) == [Chunk(text="a"), refusal]


def test_a_refusal_beside_a_text_passes_with_it() -> None:
    chunk = Chunk(text="xa", refusal="no b", finish_reason="stop")
    assert run(StopScanner(("b",), keep=False), [chunk]) == [chunk]


def test_a_tool_call_ends_the_run_of_text_before_it() -> None:
    call = (ToolCallDelta(0, "call_1", "f", "{}"),)
    for chunks in ([Chunk(text="xa"), Chunk(tool_calls=call)], [Chunk(text="xa", tool_calls=call)]):
        scanner = StopScanner(("ab",), keep=False)
        out = run(scanner, [*chunks, Chunk(text="b"), ENDED])
        assert text_of(out) == "xab"
        assert [chunk.tool_calls for chunk in out if chunk.tool_calls] == [call]
        assert text_of(out[: next(place for place, chunk in enumerate(out) if chunk.tool_calls) + 1]) == "xa"


def test_a_call_behind_the_stop_was_never_made_whole_and_streamed() -> None:
    call = (ToolCallDelta(0, "call_1", "f", "{}"),)
    ends = [Chunk(text="a", finish_reason="stop", matched_stop="b")]
    assert run(StopScanner(("b",), keep=False), [Chunk(text="ab", tool_calls=call, finish_reason="tool_calls")]) == ends
    assert run(StopScanner(("b", "bc"), keep=False), [Chunk(text="ab"), Chunk(tool_calls=call), ENDED]) == ends


def test_a_stop_that_waited_for_another_is_found_when_a_call_begins() -> None:
    call = Chunk(tool_calls=(ToolCallDelta(0, "call_1", "f", "{}"),))
    out = run(StopScanner(("abcd", "b"), keep=False), [Chunk(text="abc"), call, ENDED])
    assert out == [Chunk(text="a", finish_reason="stop", matched_stop="b")]


# Log probabilities.


def spelling(text: str, places: Iterable[int]) -> tuple[list[TokenLogprob], list[int]]:
    """Return tokens that spell the text, cut anywhere between its bytes, and the characters at which they begin."""
    data = text.encode()
    edges = sorted({0, *(min(place, len(data)) for place in places), len(data)})
    parts = [data[start:end] for start, end in pairwise(edges)]
    tokens = [
        TokenLogprob(part.decode(errors="replace"), -float(number), tuple(part)) for number, part in enumerate(parts)
    ]
    return tokens, [len(data[:edge].decode(errors="ignore")) for edge in edges[:-1]]


@given(st.text("ab👋", max_size=20), stops_of_any_kind, cuts, cuts, st.lists(st.integers(0, 3), min_size=9, max_size=9))
def test_the_tokens_that_begin_before_the_cut_stay_however_text_and_tokens_are_cut(
    text: str, stops: tuple[str, ...], places: list[int], token_places: list[int], ahead: list[int]
) -> None:
    tokens, begins = spelling(text, token_places)
    chunks, end, done = [], 0, 0
    for part, lead in zip(pieces(text, places), ahead, strict=False):
        end += len(part)
        due = max(done, min(sum(begin < end for begin in begins) + lead, len(tokens)))
        chunks.append(Chunk(text=part, logprobs=ContentLogprobs(tuple(tokens[done:due])) if due > done else None))
        done = due
    got = tokens_of(run(StopScanner(stops, keep=False), [*chunks, ENDED]))
    found = first_stop(text, stops)
    kept = [token for token, begin in zip(tokens, begins, strict=True) if found is None or begin < found[0]]
    assert (list(got.content) if isinstance(got, ContentLogprobs) else []) == kept


def arrays(tokens: Sequence[str], offsets: Sequence[int] | None = None) -> LegacyLogprobs:
    numbers = tuple(-float(number) for number in range(len(tokens)))
    tops = tuple({token: number} for token, number in zip(tokens, numbers, strict=True))
    return LegacyLogprobs(tuple(tokens), numbers, tops, None if offsets is None else tuple(offsets))


def test_arrays_are_cut_alike_and_keep_their_offsets() -> None:
    whole = Chunk(
        text="one two three", finish_reason="length", logprobs=arrays(["one", " two", " three"], [20, 23, 27])
    )
    for stop, count in [("two", 2), (" two", 1), ("three", 3), ("one", 0)]:
        (out,) = run(StopScanner((stop,), keep=False), [whole])
        tokens = ["one", " two", " three"][:count]
        assert out.logprobs == (arrays(tokens, [20, 23, 27][:count]) if count else None)


def test_the_tokens_of_a_kept_stop_stay() -> None:
    whole = Chunk(text="one two three", finish_reason="length", logprobs=arrays(["one", " two", " three"]))
    (out,) = run(StopScanner((" two",), keep=True), [whole])
    assert out.logprobs == arrays(["one", " two"])


def test_tokens_wait_with_their_text() -> None:
    scanner = StopScanner(("ab",), keep=False)
    assert run(scanner, [Chunk(text="xa", logprobs=arrays(["x", "a"], [0, 1]))]) == [
        Chunk(text="x", logprobs=arrays(["x"], [0]))
    ]
    (out,) = run(scanner, [Chunk(text="c", logprobs=arrays(["c"], [2]))])
    assert out.text == "ac"
    assert out.logprobs == LegacyLogprobs(("a", "c"), (-1.0, 0.0), ({"a": -1.0}, {"c": 0.0}), (1, 2))


def test_the_vendors_offsets_count_where_its_tokens_are_no_text() -> None:
    tokens = ["bytes:\\xf0\\x9f", "bytes:\\x91\\x8b", " b", " c"]
    whole = Chunk(text="👋 b c", finish_reason="stop", logprobs=arrays(tokens, [7, 7, 8, 10]))
    (out,) = run(StopScanner((" c",), keep=False), [whole])
    assert out.logprobs == arrays(tokens[:3], [7, 7, 8])


@looped("lead", [["<s>"], ["<think>", "Hm", "</think>"], [" "]])
def test_tokens_before_the_text_begins_do_not_count_as_text(lead: list[str]) -> None:
    tokens = [*lead, "one", " two"]
    whole = Chunk(text="one two", reasoning="Hm", finish_reason="stop", logprobs=arrays(tokens))
    (out,) = run(StopScanner((" two",), keep=False), [whole])
    assert out.logprobs == arrays(tokens[:-1])


def test_tokens_of_reasoning_pass_with_it() -> None:
    scanner = StopScanner((" two",), keep=False)
    thought = Chunk(reasoning="Hm", logprobs=arrays(["Hm"]))
    chunks = [thought, Chunk(text="one", logprobs=arrays(["one"])), Chunk(text=" two", logprobs=arrays([" two"]))]
    assert run(scanner, chunks) == [
        thought,
        Chunk(text="one", logprobs=arrays(["one"])),
        Chunk(finish_reason="stop", matched_stop=" two"),
    ]


def test_tokens_that_never_become_text_come_at_the_end() -> None:
    ending = Chunk(finish_reason="stop", logprobs=arrays(["<eos>"]))
    assert run(StopScanner(("b",), keep=False), [Chunk(text="a", logprobs=arrays(["a"])), ending])[-1] == ending


def test_the_tokens_of_a_refusal_pass() -> None:
    refusal = ContentLogprobs((), (TokenLogprob("no", -1.0),))
    chunk = Chunk(text="no", refusal="no", finish_reason="stop", logprobs=refusal)
    assert run(StopScanner(("o",), keep=False), [chunk]) == [chunk]


# Any length and number of stops.


class Counted(str):
    """A string that counts the reads of its characters."""

    looks = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        self.looks += 1
        return super().__getitem__(key)


@looped("text", ["aaaaa", "aaaab", "abaab", "c"])
def test_the_search_is_linear_in_the_answer_whatever_the_stop(text: str) -> None:
    looks = []
    for chunks in (1000, 2000):
        stop = Counted("a" * 1_000_000 + "b")
        out = run(StopScanner((stop,), keep=False), [*[Chunk(text=text)] * chunks, ENDED])
        assert text_of(out) == text * chunks
        looks.append(stop.looks)
    assert looks[0] <= 5 * 1000 * len(text)
    assert looks[1] <= 2 * looks[0]


def test_thousands_of_chunks_whose_tokens_run_ahead_are_not_looked_at_again_and_again() -> None:
    ahead = [Chunk(text="#", logprobs=arrays(["longer than its text"]))] * 5000
    out = run(StopScanner(("b",), keep=False), [*ahead, ENDED])
    tokens = tokens_of(out)
    assert tokens is not None
    assert len(spelled_tokens(tokens)) == 5000


def spelled_tokens(logprobs: Logprobs) -> tuple[str, ...]:
    return logprobs.tokens if isinstance(logprobs, LegacyLogprobs) else tuple(t.token for t in logprobs.content)


ANSWER = Extras(answer={"citations": ["u"]})


def test_extras_are_not_lost_with_a_chunk_that_waits_and_do_not_wait_themselves() -> None:
    cited = Extras(annotations=({"type": "url_citation"},))
    chunks = run(
        StopScanner(("ab",), keep=False),
        [Chunk(text="x a", extras=cited), Chunk(extras=ANSWER), Chunk(text="c"), Chunk(finish_reason="stop")],
    )
    assert chunks == [
        Chunk(text="x ", extras=cited),
        Chunk(extras=ANSWER),
        Chunk(text="ac"),
        Chunk(finish_reason="stop"),
    ]
    waiting = run(StopScanner(("ab",), keep=False), [Chunk(text="a", extras=cited), Chunk(text="c")])
    assert waiting == [Chunk(extras=cited), Chunk(text="ac")]


def test_extras_come_with_a_stop_and_those_of_the_answer_after_it() -> None:
    stopped = Chunk(0, "a", "stop", matched_stop="END", service_tier="flex", extras=Extras(choice={"c": 1}))
    scanned = replace(stopped, text="aEND", finish_reason=None, matched_stop=None)
    late = Chunk(extras=Extras(images=({"i": 1},), answer={"citations": ["u"]}))
    out = run(StopScanner(("END",), keep=False), [scanned, Chunk(text="more", extras=Extras(choice={"c": 2})), late])
    assert out == [stopped, Chunk(extras=ANSWER)]
