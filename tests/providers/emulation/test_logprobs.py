"""The two forms of log probabilities, and the text offsets in the arrays."""

import math

from hypothesis import given
from hypothesis import strategies as st

from providers.completion import FLOOR_LOGPROB, ContentLogprobs, LegacyLogprobs, TokenLogprob
from providers.emulation.logprobs import Offsets, floor_logprob, to_content, to_legacy, token_bytes
from tests.support.looped import looped


def token(text: str, logprob: float, data: bytes | None = None, *top: TokenLogprob) -> TokenLogprob:
    return TokenLogprob(text, logprob, tuple(text.encode() if data is None else data), top)


# The tokens are "Hello", a space with three quarters of a waving hand, the last quarter, and "!". The prompt is "Say
# hi".
WAVE = ContentLogprobs(
    (
        token("Hello", -0.1, None, token("Hello", -0.1), token("Hi", -2.5)),
        token(" \\xf0\\x9f\\x91", -0.7, b" \xf0\x9f\x91", token("!", -0.69), token(",", -3.0)),
        token("\\x8b", -0.01, b"\x8b", token("\\x8b", -0.01, b"\x8b"), token("\\x8c", -5.0, b"\x8c")),
        token("!", -0.3, None, token("!", -0.3), token("!", -4.0)),
    )
)
WAVE_ARRAYS = LegacyLogprobs(
    ("Hello", " \\xf0\\x9f\\x91", "\\x8b", "!"),
    (-0.1, -0.7, -0.01, -0.3),
    (
        {"Hello": -0.1, "Hi": -2.5},
        {"!": -0.69, ",": -3.0, " \\xf0\\x9f\\x91": -0.7},
        {"\\x8b": -0.01, "\\x8c": -5.0},
        {"!": -0.3},
    ),
    (6, 11, 12, 13),
)


def test_the_worked_example_converts_exactly() -> None:
    assert to_legacy(WAVE, Offsets(len("Say hi"))) == WAVE_ARRAYS


@looped("cut", range(5))
def test_offsets_run_on_across_the_pieces_of_a_stream(cut: int) -> None:
    offsets = Offsets(6)
    halves = [to_legacy(ContentLogprobs(part), offsets) for part in (WAVE.content[:cut], WAVE.content[cut:])]
    assert tuple(offset for half in halves for offset in half.text_offset or ()) == WAVE_ARRAYS.text_offset


def test_the_refusals_tokens_stand_in_when_there_are_no_others() -> None:
    assert to_legacy(ContentLogprobs((), (token("No", -1),)), Offsets()).tokens == ("No",)


def test_an_empty_list_gives_empty_arrays() -> None:
    assert to_legacy(ContentLogprobs(()), Offsets(3)) == LegacyLogprobs((), (), (), ())


def test_the_likelier_of_two_equal_texts_stays_whichever_comes_first() -> None:
    for tops in ((-0.5, -3.0), (-3.0, -0.5)):
        sampled = token("a", -3.0, None, *(token("a", top) for top in tops))
        assert to_legacy(ContentLogprobs((sampled,)), Offsets()).top_logprobs == ({"a": -0.5},)


def test_without_alternatives_the_map_holds_the_sampled_token() -> None:
    assert to_legacy(ContentLogprobs((token("a", -1.0),)), Offsets()).top_logprobs == ({"a": -1.0},)


@looped(
    ("logprob", "shown"),
    [(-math.inf, FLOOR_LOGPROB), (math.nan, FLOOR_LOGPROB), (-1e9, FLOOR_LOGPROB), (-1.5, -1.5), (0, 0)],
)
def test_what_json_cannot_carry_becomes_the_floor(logprob: float, shown: float) -> None:
    assert floor_logprob(logprob) == shown
    sampled = token("a", logprob, None, token("b", logprob))
    arrays = to_legacy(ContentLogprobs((sampled,)), Offsets())
    assert arrays.token_logprobs == (shown,)
    assert arrays.top_logprobs == ({"b": shown, "a": shown},)


def test_bytes_nobody_gave_are_the_tokens_text() -> None:
    assert token_bytes(TokenLogprob("é", -1)) == "é".encode()
    assert token_bytes(TokenLogprob("\\xc3", -1, (0xC3,))) == b"\xc3"
    assert token_bytes(TokenLogprob("\ud800", -1)) == b"?"
    assert token_bytes(TokenLogprob("a", -1, (256,))) == b"a"


def test_offsets_of_texts_count_code_points() -> None:
    assert Offsets(2).of_texts(["é", "👋a", "", "b"]) == (2, 3, 5, 5)


def test_a_broken_sequence_does_not_stop_the_count() -> None:
    broken = [TokenLogprob("x", -1, (0xF0, 0x9F)), token("a", -1), TokenLogprob("y", -1, (0x8B,)), token("b", -1)]
    assert Offsets().of_tokens(broken) == (0, 0, 2, 3)


def test_arrays_become_a_list_with_the_likeliest_first() -> None:
    arrays = LegacyLogprobs(("é", "b"), (-0.5, -1.0), ({"b": -2.0, "é": -0.5}, None), (0, 1))
    assert to_content(arrays) == ContentLogprobs(
        (token("é", -0.5, None, token("é", -0.5), token("b", -2.0)), token("b", -1.0))
    )


def test_a_token_without_log_probability_is_left_out_of_the_list() -> None:
    arrays = LegacyLogprobs(("a", "b"), (None, -1.0), (None, {"b": -math.inf}), None)
    assert to_content(arrays) == ContentLogprobs((token("b", -1.0, None, token("b", FLOOR_LOGPROB)),))


def test_arrays_of_unequal_length_lose_only_what_has_no_number() -> None:
    assert to_content(LegacyLogprobs(("a", "b"), (-1.0,), None, None)) == ContentLogprobs((token("a", -1.0),))
    assert to_content(LegacyLogprobs(("a",), (-1.0,), (), None)) == ContentLogprobs((token("a", -1.0),))
    assert to_content(LegacyLogprobs(("a",), (), None, None)) == ContentLogprobs(())


def test_arrays_without_alternatives_become_a_list_without_them() -> None:
    assert to_content(LegacyLogprobs(("a",), (-1.0,), None, None)) == ContentLogprobs((token("a", -1.0),))


@given(st.text(), st.data(), st.integers(0, 9))
def test_offsets_match_the_text_however_its_bytes_are_cut_into_tokens(
    text: str, data: st.DataObject, base: int
) -> None:
    raw = text.encode(errors="replace")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    tokens = [TokenLogprob("", 0, tuple(piece)) for piece in pieces]
    complete = [base + len(raw[:cut].decode(errors="ignore")) for cut in [0, *cuts]]
    assert Offsets(base).of_tokens(tokens) == tuple(complete)
