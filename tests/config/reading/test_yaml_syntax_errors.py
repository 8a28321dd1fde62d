"""Messages for syntax errors: both parsers give the same, and none repeats a line of the file."""

import pytest
import yaml

from config.reading import yaml_tree as tree
from config.reading.yaml_tree import parse
from tests.support.looped import looped

SLIPS = {
    "vendors:\n  openai:\n      api_key: x\n    base_url: y\n": (
        "4:5 not YAML: this line is indented by 4 spaces, which matches no line above it: line 3 has 6, line 2 has 2, "
        "line 1 has 0"
    ),
    "models:\n    a/b: {}\n  c/d: {}\n": (
        "3:3 not YAML: this line is indented by 2 spaces, which matches no line above it: line 2 has 4, line 1 has 0"
    ),
    "routes:\n  fast:\n    targets:\n      - a\n     - b\n": (
        "5:6 not YAML: this line is indented by 5 spaces, which matches no line above it: line 4 has 6, line 3 has 4, "
        "line 2 has 2"
    ),
    "vendors:\n  openai: {}\n\n  # of another\n    anthropic: {}\n": (
        "5:5 not YAML: this line is indented by 4 spaces, but line 2, indented by 2, has a value already: give both "
        "the same indentation"
    ),
    "version: 1\n vendors: {}\n": (
        "2:9 not YAML: this line is indented by 1 space, but line 1, indented by 0, has a value already: give both the "
        "same indentation"
    ),
    " version: 1\nvendors: {}\n": (
        "2:1 not YAML: the outermost keys all begin at the same column: the lines above are indented"
    ),
    "routes:\n  fast {targets: [a]}\n": (
        "2:21 not YAML: a colon is missing on this line, between its key and the bracket or brace"
    ),
    "vendors:\n  openai\n  anthropic: {}\n": (
        "3:12 not YAML: line 2 has no colon: a key is followed by one, as in key: value"
    ),
    "a: 1\nfoo\nb: 2\n": "3:1 not YAML: line 2 has no colon: a key is followed by one, as in key: value",
    "vendors:\n  openai:{}\n  a: {}\n": "3:4 not YAML: line 2 lacks the space after its colon: key: value",
    "server:\n  host: a: b\n": ("2:10 not YAML: a second colon on this line: put the value in quotes if it holds one"),
    "a: {b: 1\nc: 2\n": (
        "2:2 not YAML: the bracket or brace that starts at 1:4 is not closed before here, or a comma is missing in it"
    ),
    "a: [b, c\nd: 2\n": (
        "2:2 not YAML: the bracket or brace that starts at 1:4 is not closed before here, or a comma is missing in it"
    ),
    "r:\n  f:\n    - a\n    b: c\n": (
        "4:5 not YAML: a line of the list that starts at 3:5 has no - before it: write one, or indent it "
        "below an element"
    ),
    "r:\n  f:\n    b: c\n    - a\n": (
        "4:5 not YAML: a list element (-) among the keys of the mapping that starts at 3:5: indent the list below a "
        "key of its own"
    ),
    'a: "abc\nb: c\n': "1:4 not YAML: the quotation mark that starts here is never closed",
    'a:\n  b: {key:"${K}"}\nc: 1\n': "2:10 not YAML: a space is missing after this colon",
    'a:\n  b: {key "${K}"}\nc: 1\n': "2:10 not YAML: a colon is missing here, between the key and its value",
    "a:\n  b: {key'${K}'}\nc: 1\n": "2:10 not YAML: a colon is missing here, between the key and its value",
    'a: {b: "x", key:"${K}"}\n': "1:16 not YAML: a space is missing after this colon",
    'a: {b: "x y\'s", c: it\'s, d: "${K}}\n': "1:29 not YAML: the quotation mark that starts here is never closed",
    'a: "b" c\n': (
        "1:8 not YAML: there is text after the end of a value: put the whole value in quotes, or begin another line"
    ),
    "teams:\n  t: {models: [*]}\n": '2:17 not YAML: a word that begins with * needs quotes: "*"',
    "a: &\n": "1:5 not YAML: a word that begins with & needs quotes",
    "a: @b\n": "1:4 not YAML: a value cannot begin with this character: put it in quotes",
    "a: - b\n": "1:4 not YAML: a list with - begins on a line of its own, below its key",
    "a: }\n": "1:4 not YAML: a value is missing here, or a bracket or brace is closed that was never opened",
    "a: [1,\n": "2:1 not YAML: the file ends here, and a bracket or brace above is not closed",
    "a:\n  b: {c: [1,\n\n": "4:1 not YAML: the file ends here, and a bracket or brace above is not closed",
    "a:\n\tb: c\n": "2:1 not YAML: YAML is indented with spaces, never tabs",
    "a:\n  b: c\n\td: e\n": "3:1 not YAML: YAML is indented with spaces, never tabs",
    "a: {b: ${K}}\n": '1:9 not YAML: inside { } and [ ] a reference needs quotes: "${VAR}"',
    "a: 0\n<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> x\n": (
        "3:1 not YAML: a merge conflict was left in the file, at line 2"
    ),
}


@looped("loader", [getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml.SafeLoader])
@looped(("text", "said"), SLIPS.items())
def test_a_mistake_is_explained_by_its_lines(
    text: str, said: str, loader: type[yaml.SafeLoader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_LOADER", loader)
    place, _, message = said.partition(" ")
    problem = parse(text, "t").problems[-1]
    assert problem.message == message
    assert f"{problem.line}:{problem.column}" == place


@pytest.mark.parametrize("loader", [getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml.SafeLoader])
def test_a_bad_escape_is_told_with_two_ways_out(loader: type[yaml.SafeLoader], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_LOADER", loader)
    (problem,) = parse('a: "C:\\dir"\n', "t").problems
    assert problem.message == "not YAML: in \"...\" a backslash begins an escape: write two, or use '...'"


def test_other_syntax_errors_keep_the_parser_s_wording() -> None:
    (problem,) = parse("%YAML 3.0\n---\na: 1\n", "t").problems
    assert problem.message == "not YAML: found incompatible YAML document"


@looped(
    "text",
    [
        "key: canary\n  canary: canary\n",
        "canary\nb: 1\n",
        "a:\n   canary: canary\n canary: 1\n",
        'a: "canary" canary\n',
        "a: canary: canary\n",
        "a: [canary\nb: canary\n",
    ],
)
def test_no_message_repeats_the_text(text: str) -> None:
    assert parse(text, "t").problems
    assert "canary" not in "".join(problem.message for problem in parse(text, "t").problems)
