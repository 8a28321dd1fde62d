"""Known secrets in a text, in any form."""

import base64
import json
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from providers.redaction import MASK, MAX_TEXT, PART_CHARACTERS, holds_part, part_length, redact
from tests.support.cpu_growth import excess
from tests.support.looped import looped

SECRET = "Quartz7.violet/plum+Amber=tail"
LETTERS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+=%&", min_size=16, max_size=200)


def test_a_secret_is_masked_where_it_stands_and_the_rest_is_left() -> None:
    assert redact(f"no '{SECRET}', {SECRET}: Bearer {SECRET}", [SECRET]) == f"no '{MASK}', {MASK}: Bearer {MASK}"
    assert redact("no such model", [SECRET]) == "no such model"
    assert redact("", [SECRET]) == ""
    assert redact(SECRET, []) == SECRET


@looped(
    "written",
    [
        SECRET.upper(),
        SECRET.swapcase(),
        quote(SECRET, safe=""),
        quote(quote(SECRET, safe=""), safe=""),
        quote(SECRET, safe="").lower(),
        json.dumps(SECRET).replace("/", "\\/"),
        json.dumps(json.dumps(SECRET)).replace("/", "\\/"),
        "".join(f"\\u{ord(letter):04X}" for letter in SECRET),
        "".join(f"\\x{ord(letter):02x}" for letter in SECRET),
        SECRET.replace("+", "&#43;").replace("/", "&#x2F;").replace("=", "&#x3d;"),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
    ],
)
def test_a_secret_is_known_in_another_writing(written: str) -> None:
    assert redact(f"<{written}>", [SECRET]).strip('<>"\\') == MASK


@looped("before", [b"", b"a", b"ab", b"Bearer "])
@looped("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_in_base64_only_the_edges_are_left_wherever_it_begins(before: bytes, encode: Callable[[bytes], bytes]) -> None:
    written = encode(before + SECRET.encode() + b"..").decode()
    left = redact(written, [SECRET]).replace(MASK, " ").split()
    assert all(len(each) <= len(before) * 4 // 3 + 8 for each in left)
    assert sum(map(len, left)) < len(written) // 2


@given(LETTERS, st.data())
def test_any_piece_of_a_secret_is_masked_and_a_shorter_one_is_not(secret: str, data: st.DataObject) -> None:
    size = data.draw(st.integers(part_length(secret), len(secret)))
    at = data.draw(st.integers(0, len(secret) - size))
    assert secret[at : at + size] not in redact(f"({secret[at : at + size]})", [secret])


@given(st.text(max_size=300), LETTERS)
def test_any_text_can_be_looked_through(text: str, secret: str) -> None:
    assert isinstance(redact(text, [secret]), str)


@looped(("length", "piece"), [(8, 8), (10, 8), (12, 9), (16, 12), (40, 12), (2000, 12)])
def test_how_much_of_a_secret_is_as_good_as_all(length: int, piece: int) -> None:
    assert part_length("x" * length) == piece


def test_at_an_ellipsis_even_less_is_masked() -> None:
    for cut in range(8, len(SECRET)):
        assert redact(f"no {SECRET[:cut]}…", [SECRET]) == f"no {MASK}…"


def test_a_short_secret_is_masked_as_a_word() -> None:
    assert redact("pin k3y-9, K3Y-9. xk3y-9", ["k3y-9"]) == f"pin {MASK}, {MASK}. xk3y-9"
    assert redact("a bad key", ["key"]) == "a bad key"


def test_of_secrets_within_each_other_all_is_masked() -> None:
    assert redact("canary-one-two and canary-one", ["canary-one", "canary-one-two"]) == f"{MASK} and {MASK}"


def test_letters_that_grow_with_their_case_move_nothing() -> None:
    assert redact(f"İİİ ß {SECRET} İ", [SECRET]) == f"İİİ ß {MASK} İ"


def test_what_is_too_long_to_be_looked_through_is_cut() -> None:
    text = redact("x" * MAX_TEXT + SECRET, [SECRET])
    assert len(text) == MAX_TEXT
    assert text.endswith("…")


@looped(
    ("text", "secret"),
    [("a" * MAX_TEXT, "a" * 2000), ("ab" * 2000, "ab" * 50 + "c"), (("a" * 11 + "b") * 340, "a" * 2000)],
)
def test_a_text_made_to_be_like_the_secret_costs_little_and_goes_whole(text: str, secret: str) -> None:
    assert redact(text, [secret]).replace(MASK, "").strip("ab") == ""
    # A comparison at every position took 4 s.
    assert excess(partial(redact, text, [secret]), 10) == ""


@given(
    st.integers(0, len(SECRET) - PART_CHARACTERS),
    st.text("abcdefgh0123", max_size=40),
    st.text("abcdefgh0123", max_size=40),
)
def test_a_short_text_with_a_piece_of_a_secret_is_recognised(start: int, before: str, after: str) -> None:
    assert holds_part(f"{before}{SECRET[start : start + PART_CHARACTERS].lower()}{after}", SECRET)


@looped(
    ("text", "secret", "found"),
    [
        ("req_abcd1234", "abcd1234", True),
        ("req_abcd", "abcd", True),
        ("req_abc", "abc", False),
        ("req_0123456789", SECRET, False),
        ("", SECRET, False),
    ],
)
def test_a_short_text_without_one_is_left(text: str, secret: str, found: bool) -> None:
    assert holds_part(text, secret) == found
