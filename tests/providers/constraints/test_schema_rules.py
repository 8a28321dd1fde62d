"""The schema rules of vendors as data: the known keywords, and the values that they may list."""

from providers.constraints.engine_gaps import LLAMACPP
from providers.constraints.schema_rules import (
    ANNOTATIONS,
    ANTHROPIC,
    ASSERTIONS,
    BEDROCK,
    COHERE,
    GEMINI,
    OPENAI,
    TOOL_RULES,
    VLLM,
    SchemaRules,
    rules_of,
    takes_literal,
)
from providers.json_types import JsonValue
from tests.support.looped import looped


def test_every_keyword_of_the_rules_is_one_of_json_schema() -> None:
    known = ANNOTATIONS | ASSERTIONS | {"$defs", "definitions", "format", "propertyOrdering"}
    known |= {"$dynamicAnchor", "$recursiveAnchor"}
    assert not ANNOTATIONS & ASSERTIONS
    for rules in (*TOOL_RULES.values(), VLLM):
        assert (rules.keywords or frozenset()) <= known


def test_without_a_list_of_keywords_all_are_taken() -> None:
    assert SchemaRules().takes("anything")
    assert not OPENAI.takes("uniqueItems")
    assert rules_of(LLAMACPP) is rules_of(LLAMACPP)
    assert rules_of(LLAMACPP).takes("uniqueItems")


@looped(
    ("value", "primitive", "text_or_number"),
    [("a", True, True), (1.5, True, True), (True, True, False), (None, True, False), ([1], False, False)],
)
def test_literals_are_of_the_kinds_that_a_vendor_lists(value: JsonValue, primitive: bool, text_or_number: bool) -> None:
    assert takes_literal("any", value)
    assert takes_literal("primitive", value) is primitive
    assert takes_literal("text_or_number", value) is text_or_number


@looped(
    ("rules", "pattern", "taken"),
    [
        (ANTHROPIC, "^[a-z]+$", True),
        (ANTHROPIC, "a(?=b)", False),
        (ANTHROPIC, "(", False),
        (BEDROCK, r"^\1$", False),
        (OPENAI, r"^a{2,3}$", True),
        (COHERE, "^a", False),
        (COHERE, "[0-9]{3}", True),
        (GEMINI, "anything", True),
    ],
)
def test_a_pattern_is_taken_or_not(rules: SchemaRules, pattern: str, taken: bool) -> None:
    assert rules.patterns(pattern) is taken
