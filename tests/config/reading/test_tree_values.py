"""Trees converted to values."""

from pathlib import Path

from config.reading.table_files import SourceFiles
from config.reading.tree_values import Expander, Value
from config.reading.yaml_scalars import Unquoted
from config.reading.yaml_tree import MapNode, parse


def values(text: str, env: dict[str, str] | None = None, file: str = "t.yaml") -> tuple[dict[str, Value], Expander]:
    root = parse(text, file).root
    assert isinstance(root, MapNode)
    expander = Expander(env or {}, SourceFiles())
    return expander.mapping(root), expander


def test_values_are_what_yaml_says() -> None:
    found, expander = values("a: [1, 1.5, true, ~, x, '1']\nb: {}\n")
    assert found == {"a": [1, 1.5, True, None, "x", "1"], "b": {}}
    assert expander.problems == []


def test_a_variable_cannot_change_the_structure() -> None:
    found, _ = values("a: ${X}\nb: '${X}'\n", {"X": "1\nc: {d: [2]} # ${Y}"})
    assert found == {"a": "1\nc: {d: [2]} # ${Y}", "b": "1\nc: {d: [2]} # ${Y}"}


def test_only_an_unquoted_reference_may_become_a_number() -> None:
    found, _ = values("a: ${X}\nb: '${X}'\nc: \"${X}\"\nd: |-\n  ${X}\n", {"X": "7"})
    assert [type(found[key]) for key in "abcd"] == [Unquoted, str, str, str]


def test_comments_and_keys_are_not_expanded() -> None:
    found, expander = values("${X}: 1 # ${Y}\n")
    assert found == {"${X}": 1}
    assert expander.problems == []


def test_each_fault_is_reported_at_its_value() -> None:
    _, expander = values("a:\n  - ok\n  - ${X}${Y}\n")
    assert [str(problem) for problem in expander.problems] == [
        "t.yaml:3:5 a.1: the environment variable X is not set",
        "t.yaml:3:5 a.1: the environment variable Y is not set",
    ]


def test_an_alias_is_expanded_wherever_it_stands() -> None:
    found, expander = values("a: &x ${X}\nb: *x\n", {"X": "1"})
    assert found == {"a": "1", "b": "1"}
    assert expander.referenced == {("a",), ("b",)}


def test_a_file_is_read_relative_to_the_table(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s\n")
    found, expander = values('a: "${file:key}"', file=str(tmp_path / "t.yaml"))
    assert found == {"a": "s"}
    assert expander.files.paths == (tmp_path / "key",)


def test_a_secret_file_that_anybody_may_write_is_a_warning(tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("s")
    secret.chmod(0o666)
    _, expander = values(f'a: "${{file:{secret}}}"')
    (warning,) = expander.warnings
    assert str(warning) == f"t.yaml:1:4 a: any user of this machine may change the file {secret}"
