"""YAML text parsed into nodes with positions."""

from collections.abc import Callable

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from config.problem import Path, Position
from config.reading import yaml_tree as tree
from config.reading.yaml_tree import MAX_DEPTH, ListNode, MapNode, Node, ScalarNode, key_position, parse, value_position
from tests.support.looped import looped


def said(text: str) -> list[str]:
    return [str(problem).removeprefix("t:") for problem in parse(text, "t").problems]


def root_of(text: str) -> Node:
    parsed = parse(text, "t")
    assert parsed.problems == ()
    assert parsed.root is not None
    return parsed.root


def plain(node: Node) -> object:
    if isinstance(node, MapNode):
        return {key: plain(entry.node) for key, entry in node.entries.items()}
    return [plain(item) for item in node.items] if isinstance(node, ListNode) else node.text


TABLE = """\
a: 1
b:
  c: [x, {d: y}]
  "e f": 'q'
"""


@looped(
    ("path", "key", "value"),
    [
        ((), (1, 1), (1, 1)),
        (("a",), (1, 1), (1, 4)),
        (("b",), (2, 1), (3, 3)),
        (("b", "c"), (3, 3), (3, 6)),
        (("b", "c", 0), (3, 7), (3, 7)),
        (("b", "c", 1, "d"), (3, 11), (3, 14)),
        (("b", "e f"), (4, 3), (4, 10)),
        # A missing key has the position of its section, a path inside a scalar the position of the scalar.
        (("b", "nothing"), (2, 1), (2, 1)),
        (("b", "c", 7), (3, 3), (3, 3)),
        (("a", "deeper"), (1, 1), (1, 4)),
    ],
)
def test_every_key_and_value_knows_its_place(path: Path, key: tuple[int, int], value: tuple[int, int]) -> None:
    root = root_of(TABLE)
    assert key_position(root, path) == Position("t", *key)
    assert value_position(root, path) == Position("t", *value)


def test_columns_count_characters() -> None:
    assert value_position(root_of('"naïve 中文": x'), ("naïve 中文",)).column == 13


def test_a_byte_order_mark_shifts_nothing() -> None:
    assert value_position(root_of("\ufeffa: 1"), ("a",)) == Position("t", 1, 4)


def test_anchors_aliases_and_merges_work_and_keep_the_place_of_their_definition() -> None:
    root = root_of("base: &b {x: 1, y: 2}\nall:\n  - *b\n  - {<<: *b, y: 3}\n  - {<<: [{z: 0, x: 9}, *b]}\n")
    assert plain(root) == {
        "base": {"x": "1", "y": "2"},
        "all": [{"x": "1", "y": "2"}, {"y": "3", "x": "1"}, {"z": "0", "x": "9", "y": "2"}],
    }
    assert value_position(root, ("all", 1, "x")) == Position("t", 1, 14)
    assert value_position(root, ("all", 1, "y")) == Position("t", 4, 17)


@looped(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", ["3:1 a: key written twice; first at t:1:1"]),
        ("m:\n  x: 1\n  x: 2\n", ["3:3 m.x: key written twice; first at t:2:3"]),
        ("l:\n - {x: 1, x: 2}\n", ["2:11 l.0.x: key written twice; first at t:2:5"]),
        ("b: &b {}\nm: {<<: *b, <<: *b}\n", ["2:13 m.<<: key written twice; first at t:2:5"]),
        ("m: {<<: [1]}\n", ["1:5 m.<<: << merges mappings; this value is not a mapping"]),
        ("m:\n  1: x\n", ["2:3 m: a key must be text; YAML reads this one as a number: put it in quotes"]),
        ("no: x\n", ["1:1 a key must be text; YAML reads this one as true or false: put it in quotes"]),
        ("? [a]\n: x\n", ["1:3 a key must be text, not a list or a mapping"]),
        ("a: !secret x\n", ["1:4 a: an unknown YAML tag"]),
        ("a: !!set {x}\n", ["1:4 a: an unknown YAML tag"]),
        ("a: *nobody\n", ["1:4 a: this alias (*) names no anchor (&) written before it"]),
        ("a: &a [*a]\n", ["1:8 a.0: this alias (*) stands inside its own anchor (&)"]),
        ("a: 1\n---\nb: 2\n", ["2:1 a second document (---) starts here; a configuration is one document"]),
        ("a: x\x07y\n", ["1:5 the character U+0007 is not allowed in YAML"]),
        ("a: 1\nb: \ud800\n", ["2:4 the character U+D800 is not allowed in YAML"]),
    ],
)
def test_what_yaml_lets_pass_is_refused_at_its_place(text: str, expected: list[str]) -> None:
    assert said(text) == expected


@looped("word", ["017", "12:30", "1_000", "0x1f", "12:30:45", "+1_000.5"])
def test_a_number_in_another_notation_is_refused_with_a_hint_to_quote_it(word: str) -> None:
    (problem,) = parse(f"a:\n  b: {word}\n", "t").problems
    assert (problem.line, problem.column, problem.path) == (2, 6, "a.b")
    assert "put it in quotes" in problem.message
    assert word not in problem.message
    assert said(f"a: '{word}'") == []


@looped(
    ("word", "why"),
    [
        ("9" * 19, "must be at most 999999999999999999"),
        ("9" * 5000, "must be at most 999999999999999999"),
        (f"{'9' * 19}.5", "must be at most 999999999999999999"),
        (f"-{'9' * 23}", "must be at least -999999999999999999"),
        (".inf", "must be a finite number"),
        ("-.Inf", "must be a finite number"),
        (".NaN", "must be a finite number"),
    ],
)
def test_a_number_that_nothing_takes_is_refused_with_the_bound(word: str, why: str) -> None:
    (problem,) = parse(f"a:\n  b: {word}\n", "t").problems
    assert (problem.line, problem.column, problem.path) == (2, 6, "a.b")
    assert problem.message.startswith(f"{why}; a text ")
    assert said(f"a: '{word}'") == []


@looped(
    ("text", "place"),
    [
        ("a: 1\n\tb: 2\n", "2:1"),
        ("a:\n\t- 1\n", "2:1"),
        ("a: 1\n b: 2\n", "2:3"),
        ("a: @x\n", "1:4"),
        ("a: b: c\n", "1:5"),
        ("x: 1\na: 'open\n", "2:4"),
        ("a: [1, 2\n", "2:1"),
        ('a: "\\q"\n', "1:5"),
        ("%YAML 3.0\n---\na: 1\n", "1:1"),
    ],
)
def test_a_syntax_error_is_reported_at_its_place(text: str, place: str) -> None:
    (line,) = said(text)
    assert line.startswith(f"{place} not YAML: ")


@pytest.mark.parametrize("text", ["a: {b: ${K}}\n", "a:\n  - [x${K:-1}, y]\n"])
def test_a_syntax_error_mentions_a_reference_without_quotes(text: str) -> None:
    assert said(text)[0].endswith('not YAML: inside { } and [ ] a reference needs quotes: "${VAR}"')


def test_everything_before_a_syntax_error_is_reported_too() -> None:
    assert len(said("a: 1\na: 2\nb: @\n")) == 2


def test_text_that_holds_nothing_has_no_tree_and_no_problem() -> None:
    for text in ("", "# only a comment\n", "\n\n"):
        assert parse(text, "t") == tree.Parsed(None, ())


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(lines)


def merge_bomb() -> str:
    keys = ", ".join(f"k{i}: x" for i in range(1000))
    return f"a: &a {{{keys}}}\nb: {{<<: [{', '.join(['*a'] * 1000)}]}}\n"


@looped("text", [bomb(9), bomb(30), merge_bomb()])
def test_an_alias_bomb_is_refused_before_it_grows(text: str) -> None:
    assert "with every alias written out" in said(text)[0]


@looped(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "a: &a [x]\n" + "\n".join(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 100)).replace("*a0", "*a"),
    ],
)
def test_deep_nesting_is_refused_before_it_costs(text: str) -> None:
    assert f"nested deeper than {MAX_DEPTH} levels" in said(text)[-1]


@pytest.mark.parametrize("text", [TABLE, "a: 1\na: 2\n", "a: *b\n", "a: &x {<<: {b: 1}}\nc: *x\n", "a: [1"])
def test_the_parser_written_in_python_gives_the_same_tree(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = parse(text, "t")
    monkeypatch.setattr(tree, "_LOADER", yaml.SafeLoader)
    slow = parse(text, "t")
    assert slow.root == fast.root
    assert len(slow.problems) == len(fast.problems)


def leaf() -> st.SearchStrategy[object]:
    return st.one_of(st.text(), st.integers(-(10**9), 10**9), st.booleans(), st.none())


def nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)


@given(st.dictionaries(st.text(), st.recursive(leaf(), nested, max_leaves=6), max_size=3))
def test_what_yaml_writes_is_read_back(value: dict[str, object]) -> None:
    def as_value(node: Node) -> object:
        if isinstance(node, MapNode):
            return {key: as_value(entry.node) for key, entry in node.entries.items()}
        if isinstance(node, ListNode):
            return [as_value(item) for item in node.items]
        return tree_value(node)

    parsed = parse(yaml.safe_dump(value, allow_unicode=False), "t")
    assert parsed.problems == ()
    assert parsed.root is not None
    assert as_value(parsed.root) == value


def tree_value(node: ScalarNode) -> object:
    convert: dict[str, Callable[[str], object]] = {
        "text": str,
        "int": int,
        "bool": lambda text: text == "true",
        "null": lambda text: None,
    }
    return convert[node.kind](node.text)


@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!<>|'\"#%@`, \n\t?~.0123xo_$\x07\ud800\u2028")))
def test_any_text_is_parsed_or_refused_and_never_raises(text: str) -> None:
    parsed = parse(text, "t")
    assert all(problem.line >= 1 and problem.column >= 1 for problem in parsed.problems)


@looped(
    ("text", "keys"),
    [
        ("a: {b: 1}\nc: 2\n", {"a", "c"}),
        ("a: 1\nb: [\n", {"a", "b"}),
        ("a: 1\nb: *c\n", {"a", "b"}),
        ("- a: 1\n", set()),
        ("a", set()),
        ("", set()),
    ],
)
def test_the_outermost_keys_are_known_even_where_the_text_cannot_be_read_to_its_end(text: str, keys: set[str]) -> None:
    assert parse(text, "t").keys == keys


def test_a_tag_s_handle_is_not_quoted() -> None:
    (problem,) = parse("a: !secret!x 1\n", "t").problems
    assert "undefined tag handle" in problem.message
    assert "secret" not in problem.message
