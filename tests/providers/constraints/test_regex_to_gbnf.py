"""Patterns as GBNF: exact rules, and the same language according to an independent reader."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from providers.constraints.regex_parse import parse
from providers.constraints.regex_to_gbnf import MAX_REPEATS, Unwritable, gbnf_literal, to_gbnf
from tests.providers.gbnf import as_expression, rules_of, unescaped
from tests.providers.patterns import patterns, strange, texts
from tests.support.looped import looped


@looped(
    ("pattern", "rules"),
    [
        ("", ['root ::= ""']),
        ("^abc$", ['root ::= "abc"']),
        (r'say "hi"\n\\', [r'root ::= "say \"hi\"\n\\"']),
        ("yes|no", ['root ::= "yes" | "no"']),
        ("|a", ["root ::= ([a])?"]),
        (r"\d{3}-\d", ['root ::= [0-9] [0-9] [0-9] "-" [0-9]']),
        ("[^a-z]é", [r'root ::= [\x01-\x60\x7B-\uD7FF\uE000-\U0010FFFF] "é"']),
        ("[-^\\]]", [r"root ::= [\x2D\x5D-\x5E]"]),
        ("a+b*", ["root ::= [a]+ ([b]+)?"]),
        ("(ab)+", ['root ::= ("ab")+']),
        ("a{2,}", ["root ::= [a] [a]+"]),
        ("a{2,4}", ["root ::= [a] r2", "r1 ::= [a] [a]?", "r2 ::= [a] r1?"]),
        ("(a|b){2}", ["root ::= r1 r1", "r1 ::= [a] | [b]"]),
        ("(a?|b*)*c", ['root ::= (([a] | [b]+)+)? "c"']),
        ("a?b?", ["root ::= ([a] [b]? | [b])?"]),
        ("a{0}", ['root ::= ""']),
        (r"[\w-]{3}", ["root ::= r1 r1 r1", r"r1 ::= [\x2D0-9A-Z\x5Fa-z]"]),
    ],
)
def test_a_pattern_has_its_rules(pattern: str, rules: list[str]) -> None:
    assert to_gbnf(parse(pattern)).split("\n") == rules


@given(patterns, texts)
@example("(a|b)*a(a|b){2}", "aaab")
@example("((a?){2}b{0,2}){1,2}", "")
@example("(a*b?)+", "ba")
def test_the_grammar_has_the_texts_that_match_and_no_others(pattern: str, text: str) -> None:
    written = as_expression(to_gbnf(parse(pattern)))
    assert bool(written.fullmatch(text)) == bool(re.fullmatch(pattern, text))


@given(patterns, strange)
@example(r"\W", "é")
@example(r"[^\d]", "٣")
@example(r"\S", "\ufeff")
def test_beyond_ascii_a_grammar_has_only_texts_that_match(pattern: str, text: str) -> None:
    written = as_expression(to_gbnf(parse(pattern)))
    assert not written.fullmatch(text) or re.fullmatch(pattern, text)


@given(patterns)
def test_nothing_that_may_be_empty_is_repeated(pattern: str) -> None:
    # llama.cpp calls it left recursion. The expression of every rule must need a character, and only `?` may drop one.
    rules = rules_of(to_gbnf(parse(pattern)))
    for name in rules.keys() - {"root"}:
        alone = as_expression("\n".join(f"{key} ::= {body}" for key, body in {**rules, "root": name}.items()))
        assert not alone.fullmatch("")
    assert not any(
        re.search(r"[*]|\?\s*[?+]|\+\s*[?+]", re.sub(r'"(?:[^"\\]|\\.)*"', "", body)) for body in rules.values()
    )


@looped(
    ("pattern", "reason"),
    [
        (r"a\b", "uses a word boundary at position 1"),
        (r"[^\s\S]", "has a class without a character"),
        (r"\x00", "has a class without a character"),
        (f"a{{{MAX_REPEATS + 1}}}", f"counts more than {MAX_REPEATS} repetitions"),
        ("a{1500}b{0,501}", f"counts more than {MAX_REPEATS} repetitions"),
    ],
)
def test_what_no_grammar_stands_for_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(Unwritable) as caught:
        to_gbnf(parse(pattern))
    assert str(caught.value) == reason


def test_nested_counts_multiply_in_rules_not_in_length() -> None:
    assert len(to_gbnf(parse("((a{100}){100}){100}"))) < 5000
    assert len(to_gbnf(parse(f".{{1,{MAX_REPEATS}}}"))) < 20 * MAX_REPEATS


@given(st.text(st.characters(codec="utf-8")))
def test_a_literal_reads_back_on_one_line(text: str) -> None:
    written = gbnf_literal(text)
    assert written[0] == written[-1] == '"'
    assert written.isprintable()
    assert unescaped(written[1:-1]) == text
