"""The redactor: its options, and that a stream in chunks is redacted like the whole text."""

import random
from collections.abc import Mapping

import pytest

from proxy.plugins.api import (
    ALLOW,
    AboutRequest,
    AnswerTexts,
    GuardedText,
    OptionError,
    Refuse,
    RefusedStream,
    RequestTexts,
    Rewrite,
)
from proxy.plugins.shipped.regex_redactor import WINDOW, RegexRedactor
from tests.support.looped import looped

ABOUT = AboutRequest("r", "t", "m", "openai", None, {})
SSN, MAIL = r"\b\d{3}-\d{2}-\d{4}\b", r"[\w.+-]{1,64}@[\w.-]{1,100}\.[a-z]{2,10}"


def shown(text: str) -> tuple[GuardedText, ...]:
    return (GuardedText(text, "content", "user", "prompt"),)


def test_matches_are_replaced_in_requests_and_answers() -> None:
    redactor = RegexRedactor({"patterns": [SSN, MAIL]})
    text = "123-45-6789 and a.b@c.de, but 1123-45-6789"
    new = Rewrite(("[redacted] and [redacted], but 1123-45-6789",))
    assert redactor.check_request(RequestTexts(ABOUT, shown(text))) == new
    assert redactor.check_answer(AnswerTexts(ABOUT, 0, shown(text))) == new


def test_it_refuses_and_looks_at_one_side_alone_where_it_is_told_to() -> None:
    redactor = RegexRedactor({"patterns": ["secret"], "action": "refuse", "where": ["answer"], "ignore_case": True})
    assert redactor.check_request(RequestTexts(ABOUT, shown("SECRET"))) == ALLOW
    assert isinstance(redactor.check_answer(AnswerTexts(ABOUT, 0, shown("a SECRET"))), Refuse)
    stream = redactor.open_stream(ABOUT, 0)
    with pytest.raises(RefusedStream):
        stream.feed("a SECRET that is out" * 10)
    silent = RegexRedactor({"patterns": ["secret"], "where": ["request"]}).open_stream(ABOUT, 0)
    assert silent.feed("secret") + silent.end() == "secret"


@looped("patterns", [[SSN], [MAIL, SSN], [r"(?<=a)1{1,3}(?!2)"], ["1-2"]])
def test_a_stream_in_any_pieces_is_redacted_as_the_whole(patterns: list[str]) -> None:
    redactor, draw = RegexRedactor({"patterns": patterns}), random.Random(7)
    for _ in range(400):
        text = "".join(draw.choices("1-2a@.c ", k=draw.randrange(60))).replace("11", "123-45-6789")
        stream, out, place = redactor.open_stream(ABOUT, 0), "", 0
        while place < len(text):
            size = draw.randrange(1, 9)
            out += stream.feed(text[place : place + size])
            place += size
        assert out + stream.end() == redactor.replaced(text, 0, len(text) + 1)[0], text


def test_matches_over_the_edges_of_windows_are_found() -> None:
    redactor = RegexRedactor({"patterns": ["ab{1,20}c"]})
    for before in range(WINDOW - 30, WINDOW + 2):
        text = "x" * before + "abbbbbbbbbbbbbbbbbbc" + "y" * WINDOW
        assert redactor.replaced(text, 0, len(text) + 1)[0] == "x" * before + "[redacted]" + "y" * WINDOW


@looped(
    ("options", "path", "message"),
    [
        ({}, ("patterns",), "must be a list"),
        ({"patterns": []}, ("patterns",), "must be a list"),
        ({"patterns": ["a"], "more": 1}, ("more",), "unknown option"),
        ({"patterns": ["a"], "action": "x"}, ("action",), "must be one of"),
        ({"patterns": ["a"], "where": ["x"]}, ("where",), "must be a list of"),
        ({"patterns": ["a"], "replacement": 1}, ("replacement",), "must be a text"),
        ({"patterns": ["a", 1]}, ("patterns", 1), "must be a pattern"),
        ({"patterns": ["("]}, ("patterns", 0), "is not a regular expression"),
        ({"patterns": ["a*"]}, ("patterns", 0), "matches the empty text"),
        ({"patterns": ["a+"]}, ("patterns", 0), "may match more than 256"),
        ({"patterns": ["a(?=b+)"]}, ("patterns", 0), "may match more than 256"),
        ({"patterns": ["(a{1,3}){1,30}"]}, ("patterns", 0), "repeats a part of variable length"),
        ({"patterns": ["(ab|cd){1,30}"]}, ("patterns", 0), "repeats a part of variable length"),
        ({"patterns": [r"(a)\1"]}, ("patterns", 0), "refers to a group"),
    ],
)
def test_options_that_make_no_sense_or_cost_too_much_are_refused(
    options: Mapping[str, object], path: tuple[object, ...], message: str
) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        RegexRedactor(options)
    assert caught.value.path == path
