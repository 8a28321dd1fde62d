"""Trees in the syntax of a linear-time regex engine."""

import pytest

from providers.constraints.regex_parse import Special, parse
from providers.constraints.regex_to_rust import to_rust
from tests.support.looped import looped


@looped(
    ("pattern", "written"),
    [
        ("", "^(?:)$"),
        ("^a$", r"^(?:[\x{61}-\x{61}])$"),
        ("(a|)b", r"^(?:(?:[\x{61}-\x{61}]|)[\x{62}-\x{62}])$"),
        ("a*?b{2}c{1,3}", r"^(?:(?:[\x{61}-\x{61}]){0,}(?:[\x{62}-\x{62}]){2,2}(?:[\x{63}-\x{63}]){1,3})$"),
        (r"\W", r"^(?:[\x{0}-\x{2F}\x{3A}-\x{40}\x{5B}-\x{5E}\x{60}-\x{60}\x{7B}-\x{D7FF}\x{E000}-\x{10FFFF}])$"),
        (".", r"^(?:[\x{0}-\x{D7FF}\x{E000}-\x{10FFFF}])$"),
        (r"[$^]", r"^(?:[\x{24}-\x{24}\x{5E}-\x{5E}])$"),
    ],
)
def test_a_pattern_is_written_by_code_points(pattern: str, written: str) -> None:
    assert to_rust(parse(pattern)) == written


def test_a_class_without_a_character_is_refused() -> None:
    with pytest.raises(ValueError, match="has a class without a character"):
        to_rust(parse(r"[^\x00-\U0010FFFF]"))


def test_what_is_special_is_asked_about_before() -> None:
    with pytest.raises(TypeError):
        to_rust(Special("a look-around", 0))
