"""Text that the patterns match is nowhere in the result, whatever contains it, and the result is bounded."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from proxy.payload_log.redact_content import DEEPEST, REDACTED, TOO_DEEP, dumped, fitted, redacted, redacted_json
from tests.support.looped import looped

MAIL = [re.compile(r"[a-z]+@[a-z.]+")]
CARD = [re.compile(r"\b\d{16}\b")]

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
)


@looped(
    ("content", "shown"),
    [
        (b'{"a":["x bob@example.com y"]}', {"a": [f"x {REDACTED} y"]}),
        (b'{"a":"bob\\u0040example.com"}', {"a": REDACTED}),
        (b'{"bob@example.com":1}', {REDACTED: 1}),
        (b"not json: bob@example.com", f"not json: {REDACTED}"),
        (b'{"a":NaN,"b":"bob@example.com"}', f'{{"a":NaN,"b":"{REDACTED}"}}'),
        (b"\xff bob@example.com", f"\\xff {REDACTED}"),
        (b"", ""),
        (json.dumps({"arguments": '{"a":"bob\\u0040example.com"}'}).encode(), {"arguments": f'{{"a":"{REDACTED}"}}'}),
        (json.dumps({"arguments": '{"a":"\\u0062ob\\u0040example.c'}).encode(), {"arguments": f'{{"a":"{REDACTED}'}),
        (
            json.dumps(
                {"a": json.dumps({"b": json.dumps("bob\u0040e.x", ensure_ascii=False).replace("@", "\\u0040")})}
            ).encode(),
            {"a": f'{{"b": ""{REDACTED}""}}'},
        ),
        (b"not json: bob\\u0040example.com", f"not json: {REDACTED}"),
        (b'{"bob\\\\u0040example.com":1}', {REDACTED: 1}),
        (b'{"a":"C:\\\\new"}', {"a": "C:\\new"}),  # nothing matches: unchanged
        (b'{"a":"\\\\ud83d\\\\ude00 \\\\ud83d bob\\\\u0040example.com"}', {"a": f"\U0001f600 \ud83d {REDACTED}"}),
        (json.dumps({"a": "\\" * 2**10 + "u0040"}).encode(), {"a": TOO_DEEP}),
    ],
)
def test_texts_and_names_are_redacted_however_they_are_written(content: bytes, shown: object) -> None:
    assert redacted_json(content, MAIL) == shown


def test_escaped_quotes_hide_no_match() -> None:
    content = json.dumps({"arguments": json.dumps({"q": 'my "pin" is 1'})}).encode()
    shown = redacted_json(content, [re.compile(r'"pin" is \d')])
    assert shown == {"arguments": '{"q": "my [redacted]"}'}


def test_numbers_are_redacted_too_and_other_values_stay() -> None:
    content = b'{"card":4111111111111111,"n":[1,2.5,true,null]}'
    assert redacted_json(content, CARD) == {"card": REDACTED, "n": [1, 2.5, True, None]}


def nested(opening: bytes, closing: bytes, levels: int) -> bytes:
    return opening * levels + b'"bob@example.com"' + closing * levels


@looped(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@looped("patterns", [MAIL, []])
def test_what_is_nested_too_deeply_is_not_shown_on_any_python(
    opening: bytes, closing: bytes, patterns: list[re.Pattern[str]]
) -> None:
    for levels in (DEEPEST + 1, 600, 100_000):
        assert redacted_json(nested(opening, closing, levels), patterns) == TOO_DEEP
    shown = redacted_json(nested(opening, closing, DEEPEST), patterns)
    data, cut = fitted(shown, len(dumped(shown)) - 1)
    assert shown != TOO_DEEP
    assert (len(data) < len(dumped(shown)), cut) == (True, True)


def test_many_brackets_beside_each_other_are_not_deep() -> None:
    assert redacted_json(b"[" + b"[[]]," * DEEPEST + b"1]", MAIL) == [[[]]] * DEEPEST + [1]


def test_every_pattern_is_applied() -> None:
    assert redacted("bob@a.b 4111111111111111", [*MAIL, *CARD]) == f"{REDACTED} {REDACTED}"


@given(VALUES)
def test_without_patterns_and_within_the_bound_a_value_is_as_it_was(value: object) -> None:
    data = json.dumps(value).encode()
    shown, cut = fitted(redacted_json(data, ()), 10**9)
    assert (json.loads(shown), cut) == (value, False)


@given(VALUES, st.integers(64, 300))
def test_what_is_too_long_fits_and_is_one_line_of_json(value: object, most: int) -> None:
    found, cut = fitted(redacted_json(json.dumps(value).encode(), ()), most)
    assert len(found) <= most
    assert b"\n" not in found
    assert cut == (json.loads(found) != value)


def test_long_texts_are_cut_first() -> None:
    found, cut = fitted({"image": "A" * 50_000, "text": "short"}, 2000)
    assert (json.loads(found), cut) == ({"image": "A" * 1024 + "... [48976 more]", "text": "short"}, True)
    assert json.loads(fitted([0] * 50_000, 2000)[0]).startswith("[0,0,0")


def test_a_lone_surrogate_is_written_as_its_escape() -> None:
    assert dumped("\ud800\n") == b'"\\ud800\\n"'
