"""Patterns that are compiled when the gateway is ready or when they are first used."""

import re

from providers.vendor_text.late_pattern import LatePattern, compile_late_patterns


def test_it_finds_what_a_compiled_pattern_finds() -> None:
    pattern = LatePattern("(a+)b", re.IGNORECASE)
    found = pattern.search("xAab")
    assert found is not None
    assert found[1] == "Aa"
    assert pattern.match("xab") is None
    assert pattern.fullmatch("abc") is None
    assert pattern.sub(lambda match: match[1], "abab") == "aa"


def test_it_is_compiled_once_and_not_before_it_is_used() -> None:
    pattern = LatePattern("(")
    try:
        pattern.search("")
    except re.error:
        assert pattern.pattern == "("
    good = LatePattern(b"a")
    assert good.compiled is good.compiled


def test_all_are_compiled_at_once() -> None:
    pattern = LatePattern("a")
    assert "compiled" not in vars(pattern)
    compile_late_patterns()
    assert "compiled" in vars(pattern)
