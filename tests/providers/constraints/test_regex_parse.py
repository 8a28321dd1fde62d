"""Patterns parsed into trees: supported syntax, syntax that is parsed but unsupported, and malformed patterns."""

import re
import warnings
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.constraints.complexity_limits import MAX_GROUPS, MAX_PATTERN
from providers.constraints.regex_chars import (
    BEYOND_ASCII,
    OTHER_DIGITS,
    OTHER_SPACES,
    complement,
    merge_ranges,
    ranges_of,
)
from providers.constraints.regex_parse import (
    EMPTY,
    Alternation,
    Chars,
    MalformedPattern,
    Node,
    Repeat,
    Sequence,
    Special,
    find_unsupported,
    parse,
)
from tests.providers.patterns import patterns
from tests.support.looped import looped


def one(text: str) -> Chars:
    return Chars(ranges_of(text))


A, B = one("a"), one("b")
DIGIT = Chars(((0x30, 0x39),), OTHER_DIGITS)
LINE_ENDS = ranges_of("\n\r\u2028\u2029")

TREES: tuple[tuple[str, Node], ...] = (
    ("", EMPTY),
    ("a", A),
    ("ab", Sequence((A, B))),
    ("a|b|", Alternation((A, B, EMPTY))),
    ("(a)", A),
    ("(?:a)(?P<x>b)(?<y>a)", Sequence((A, B, A))),
    ("a?", Repeat(A, 0, 1)),
    ("a*?b+", Sequence((Repeat(A, 0, None), Repeat(B, 1, None)))),
    ("a{2}", Repeat(A, 2, 2)),
    ("a{2,}", Repeat(A, 2, None)),
    ("a{02,3}?", Repeat(A, 2, 3)),
    ("(ab){0,1}", Repeat(Sequence((A, B)), 0, 1)),
    (r"\d", DIGIT),
    (r"[\da]", Chars((*DIGIT.ranges, (97, 97)), OTHER_DIGITS)),
    (r"\D", Chars(complement((*DIGIT.ranges, *OTHER_DIGITS)), OTHER_DIGITS)),
    (r"[^\s]", Chars(complement((*ranges_of(" \t\n\r\f\v"), *OTHER_SPACES)), OTHER_SPACES)),
    (r"\W", Chars(merge_ranges(((0, 47), (58, 64), (91, 94), (96, 96), (123, 127))), BEYOND_ASCII)),
    (r"[^\D]", DIGIT),
    (r"[a-c-]", Chars(((45, 45), (97, 99)))),
    ("[]a]", one("]a")),
    ("[^]a]", Chars(complement(ranges_of("]a")))),
    (r"[\]\-\\]", one("]-\\")),
    (r"\x41\u0042\U00000043\x{44}\u{45}", Sequence(tuple(map(one, "ABCDE")))),
    (r"\n\t\.\/\_", Sequence(tuple(map(one, "\n\t./_")))),
    ("]}", Sequence((one("]"), one("}")))),
    ("{a}{", Sequence(tuple(map(one, "{a}{")))),
    ("a{b,{1x}", Sequence(tuple(map(one, "a{b,{1x}")))),
    (".", Chars(complement(LINE_ENDS), LINE_ENDS)),
)


@looped(("pattern", "tree"), TREES)
def test_a_pattern_becomes_its_tree(pattern: str, tree: Node) -> None:
    assert parse(pattern) == tree
    assert find_unsupported(tree) is None


@looped(
    ("anchored", "plain"),
    [
        ("^a$", "(?:a)"),
        (r"\Aa\Z", "(?:a)"),
        ("^(a|b)$", "(?:(a|b))"),
        ("^a|^b$", "(?:a)|(?:b)"),
        ("(^a|b)c", "(a|b)c"),
        ("^^a$$", "(?:a)"),
        ("()^a", "(?:a)"),
        ("^", ""),
    ],
)
def test_anchors_at_the_ends_say_nothing(anchored: str, plain: str) -> None:
    assert flat(parse(anchored)) == flat(parse(plain))


def flat(node: Node) -> Node:
    match node:
        case Sequence((only,)):
            return flat(only)
        case Sequence(parts):
            return Sequence(tuple(map(flat, parts)))
        case Alternation(branches):
            return Alternation(tuple(map(flat, branches)))
        case _:
            return node


@looped(
    ("pattern", "what"),
    [
        ("a(?=b)", "uses a look-around at position 1"),
        ("(?<!b)a", "uses a look-around at position 0"),
        (r"(a)\1", "uses a back reference at position 3"),
        ("(?P<n>a)(?P=n)", "uses a back reference at position 8"),
        (r"(?<n>a)\k<n>", "uses a back reference at position 7"),
        (r"\bword", "uses a word boundary at position 0"),
        (r"\p{L}+", "uses a Unicode property at position 0"),
        ("(?i)abc", "uses inline flags at position 0"),
        ("(?s:a.b)", "uses inline flags at position 0"),
        ("(?>a)", "uses an atomic group at position 0"),
        ("(?(1)a|b)", "uses a conditional at position 0"),
        ("(?#note (x)", "uses a comment at position 0"),
        ("a++", "uses a possessive repetition at position 0"),
        ("a**", "uses a repetition of a repetition at position 0"),
        ("a{2}{3}", "uses a repetition of a repetition at position 0"),
        ("a{100001}", "uses such a large count at position 0"),
        ("a^b", "uses the anchor '^' inside a pattern at position 1"),
        ("a?^b", "uses the anchor '^' inside a pattern at position 2"),
        ("(a$)*", "uses the anchor '$' inside a pattern at position 2"),
        ("^*a", "uses a repeated anchor at position 0"),
        ("a{,3}", "uses a count without its first number at position 1"),
        ("[[:alpha:]]", "uses an unescaped '[' in a class at position 1"),
        ("[a&&b]", "uses a set operation in a class at position 2"),
        ("[a--b]", "uses a set operation in a class at position 2"),
        (r"[a-\d]", "uses a class as an end of a range at position 1"),
        (r"[\b]", "uses such an escape in a class at position 1"),
        (r"[\A]", "uses such an escape in a class at position 1"),
        (r"\ca", r"uses the escape '\c' at position 0"),
        (r"\0", r"uses the escape '\0' at position 0"),
        (r"\x4", r"uses the escape '\x' at position 0"),
        (r"\ud800", "uses the number of no character at position 0"),
    ],
)
def test_what_only_some_dialects_know_is_kept_and_named(pattern: str, what: str) -> None:
    assert find_unsupported(parse(pattern)) == what


@looped(
    ("pattern", "reason"),
    [
        ("(", "has an unbalanced '(' at position 0"),
        ("a(b", "has an unbalanced '(' at position 1"),
        ("(?=a", "has an unbalanced '(' at position 0"),
        ("a)", "has an unbalanced ')' at position 1"),
        ("[a", "has a class without an end at position 2"),
        ("[]", "has a class without an end at position 2"),
        ("[a-", "has a class without an end at position 3"),
        ("a\\", "ends with a backslash at position 2"),
        ("*", "has '*' with nothing to repeat at position 0"),
        ("a|+", "has '+' with nothing to repeat at position 2"),
        ("(?)", None),
        ("(*)", "has '*' with nothing to repeat at position 1"),
        ("a{3,2}", "has a repetition whose bounds are the wrong way round at position 6"),
        ("[b-a]", "has a range whose ends are the wrong way round at position 1"),
        ("(" * (MAX_GROUPS + 1) + ")" * (MAX_GROUPS + 1), "is nested too deeply at position 65"),
        ("a" * (MAX_PATTERN + 1), "is longer than 4096 characters"),
    ],
)
def test_what_no_dialect_takes_is_malformed(pattern: str, reason: str | None) -> None:
    if reason is None:
        assert find_unsupported(parse(pattern)) is not None
        return
    with pytest.raises(MalformedPattern) as caught:
        parse(pattern)
    assert str(caught.value) == reason


def test_long_and_deep_patterns_are_read() -> None:
    assert parse("a" * MAX_PATTERN) == Sequence((A,) * MAX_PATTERN)
    assert parse("^" * MAX_PATTERN) == EMPTY
    assert parse("(" * MAX_GROUPS + "a" + ")" * MAX_GROUPS) == A
    assert find_unsupported(parse("a{" + "9" * 4000 + "}")) == "uses such a large count at position 0"


@given(patterns)
def test_every_pattern_of_the_subset_is_read_whole(pattern: str) -> None:
    assert find_unsupported(parse(pattern)) is None


@given(st.text("ab01^$.|*+?(){}[]\\-,:=!<>iPdwsDWSbx&é", max_size=14))
def test_what_python_compiles_is_never_malformed(pattern: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings that a meaning may change one day
            re.compile(pattern)
    except (re.error, OverflowError):
        return
    parse(pattern)


@given(st.text(max_size=20))
def test_any_text_is_a_tree_or_malformed(pattern: str) -> None:
    with suppress(MalformedPattern):
        assert isinstance(parse(pattern), Node)


def test_a_construct_reads_in_a_sentence() -> None:
    assert find_unsupported(Sequence((A, Repeat(Special("a thing", 7), 0, 1)))) == "uses a thing at position 7"
