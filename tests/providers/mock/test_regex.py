"""Sample texts of regular expressions."""

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.mock.errors import Unsupported
from providers.mock.regex import sample
from tests.support.looped import looped

SUPPORTED = (
    r"",
    r"abc",
    r"^abc$",
    r"(yes|no)",
    r"a|b$",
    r"\d{4}-\d{2}-\d{2}",
    r"[A-Z][a-z]+ [0-9]{2,}",
    r"[^a-z]",
    r"[^\w]x",
    r"[^\S]",
    r"\S\D\W\s",
    r"[\s\S]{3}",
    r"[]a]",
    r"[a-]+",
    r"[\w.-]+@[\w-]+\.(?:com|org)",
    r"(?:a|b)*?c+?d??",
    r"cost: \$\d+\.\d\d",
    r"a.c",
    r"\t\n\r\\\(\)\[\]\{\}\^\$\*\+\?\.\|",
    r"((a{2}){3}b?){2}",
    r"x{0,5}y{3,}",
    r'^{"a": \d}$',
    "a{",
    "a{x}",
    "a{²}",
)
REFUSED = (
    "(?=a)a",
    r"(a)\1",
    r"\bword\b",
    "a^b",
    "a$b",
    "(",
    ")",
    "(a",
    "a)",
    "[",
    "[a",
    "[[a]]",
    "[b-a]",
    r"[a-\d]",
    "*",
    "a**",
    "^?a",
    "a$*",
    "a++",
    "a+??",
    "a{,3}",
    "a{3,2}",
    "a{9999999}",
    "(((a{100}){100}){100})",
    "(" * 100 + ")" * 100,
    "\\",
    r"[^\s\S]",
)


@looped("pattern", SUPPORTED)
def test_the_sample_matches_its_pattern(pattern: str) -> None:
    assert re.fullmatch(pattern, sample(pattern))


@looped("pattern", REFUSED)
def test_what_is_not_supported_is_refused(pattern: str) -> None:
    with pytest.raises(Unsupported, match="the pattern"):
        sample(pattern)


@given(st.text("ab01^$.|*+?(){}[]\\-,dwsDWS", max_size=12))
def test_whatever_is_not_refused_matches(pattern: str) -> None:
    try:
        text = sample(pattern)
    except Unsupported:
        return
    with warnings.catch_warnings():
        # Python warns that `[a||b]` may mean something else one day.
        warnings.simplefilter("ignore", FutureWarning)
        assert re.fullmatch(pattern, text)
