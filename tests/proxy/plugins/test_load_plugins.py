"""Loading plugins: an error in a plugin is reported at its place in the configuration."""

from pathlib import Path

import pytest

from config.load_config import load_text
from proxy.plugins.load_plugins import guards_of, load_plugins, passed_plugins
from proxy.process.load_table import Source, TableRefused
from tests.proxy.kit.whole_gateway import MOCK
from tests.proxy.plugins.kit import KIT

pytestmark = pytest.mark.smoke


SHIPPED = "proxy.plugins.shipped"


def refused(text: str, folder: Path, **env: str) -> list[str]:
    path = folder / "t.yaml"
    path.write_text(MOCK + text, encoding="utf-8")
    with pytest.raises(TableRefused) as caught:
        Source(path, env).load()
    return [str(problem).removeprefix(f"{path}:") for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("use: 'no_such:C'", "4:20 plugins.p.use: there is no module no_such where the gateway runs"),
        (f"use: '{KIT}:Nobody'", f"4:20 plugins.p.use: the module {KIT} has no Nobody"),
        ("use: nobody", "4:20 plugins.p.use: no entry point of the group dragoman.plugins has this name"),
        (f"use: '{KIT}:plugin'", "4:20 plugins.p.use: names an object that is not a class"),
        (
            f"use: '{KIT}:OldPlugin'",
            "4:20 plugins.p.use: is of api_version 0; this gateway has version 1 of the plugin interface",
        ),
        (
            f"use: '{KIT}:NoPlugin'",
            "4:20 plugins.p.use: has none of the methods of a plugin: check_request, check_answer, deliver",
        ),
        ("use: nobody", "; a class is named as module:Class"),
        (
            f"use: '{KIT}:AsyncGuard'",
            "plugins.p.use: its check_request is a coroutine (async def), which is never awaited: write a plain def",
        ),
        (f"use: '{KIT}:AsyncStreams'", "4:20 plugins.p.use: its open_stream is a coroutine"),
        (
            f"use: '{KIT}:WithoutRequest'",
            "4:20 plugins.p.use: its check_request does not accept its arguments: check_request(self, request)",
        ),
        (
            f"use: '{KIT}:WithoutOptions'",
            "4:20 plugins.p.use: its __init__ does not take the options alone: __init__(self, options)",
        ),
        (f"use: '{KIT}:Hostile'", "4:11 plugins.p.options: the plugin cannot be made: KeyError at kit.py:"),
        (
            f"use: '{SHIPPED}.regex_redactor:RegexRedactor', options: {{patterns: ['a', '(']}}",
            "plugins.p.options.patterns.1: is not a regular expression: missing ), unterminated subpattern",
        ),
        ("use: 'a b'", "4:20 plugins.p.use: must be module:Class"),
        (f"use: '{KIT}:Hider', fail: maybe", "plugins.p.fail: must be open or closed"),
        (f"use: '{KIT}:Hider', deadline: 2m", "plugins.p.deadline: must be at most 60"),
        (f"use: '{KIT}:Hider', oops: 1", "plugins.p.oops: unknown key"),
    ],
)
def test_what_is_wrong_is_told_at_its_position(tmp_path: Path, entry: str, said: str) -> None:
    (problem,) = refused(f"plugins: {{p: {{{entry}}}}}\n", tmp_path)
    assert said in problem


@pytest.fixture
def broken_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "broken_plugin_of_tests.py").write_text("api_version = 1\n\ndef broken(:\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return "broken_plugin_of_tests"


def test_a_mistake_in_the_syntax_is_told_at_its_line(tmp_path: Path, broken_module: str) -> None:
    (problem,) = refused(f"plugins: {{p: {{use: '{broken_module}:Any'}}}}\n", tmp_path)
    assert problem.endswith("the module cannot be imported: SyntaxError at broken_plugin_of_tests.py:3")


def test_what_a_plugin_prints_is_not_in_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load_text(f"{MOCK}plugins: {{p: {{use: '{KIT}:Printer'}}}}\n", "t", {})
    assert load_plugins(loaded)[1] == ()
    out, err = capsys.readouterr()
    assert (out, err) == ("", "made\n")


def test_a_value_from_a_reference_is_in_no_message(tmp_path: Path) -> None:
    text = f"plugins: {{p: {{use: '{KIT}:RequestRefuser', options: {{bad: '${{SECRET}}'}}}}}}\n"
    (problem,) = refused(text, tmp_path, SECRET="hunter2hunter2")
    assert problem.endswith("plugins.p.options.bad: must not be ***")


def test_options_are_in_no_repr(tmp_path: Path) -> None:
    loaded = load_text(f"{MOCK}plugins: {{p: {{use: '{KIT}:Hider', options: {{word: hunter2}}}}}}\n", "t", {})
    plugins, _ = load_plugins(loaded)
    assert "hunter2" not in repr(loaded.config)
    assert "hunter2" not in repr(plugins)


TEAMS = """plugins:
  second: {use: "tests.proxy.plugins.kit:Hider"}
  sink: {use: "tests.proxy.plugins.kit:Collector"}
  first: {use: "tests.proxy.plugins.kit:LiveRefuser"}
teams:
  all: {keys: ["sha256:0000000000000000000000000000000000000000000000000000000000000001"], models: ["*"]}
  own:
    {keys: ["sha256:0000000000000000000000000000000000000000000000000000000000000002"], plugins: [first, second]}
  none: {keys: ["sha256:0000000000000000000000000000000000000000000000000000000000000003"], models: ["*"], plugins: []}
"""


def test_a_team_has_all_guards_in_the_table_s_order_or_its_own() -> None:
    loaded = load_text(MOCK + TEAMS, "t", {})
    plugins, problems = load_plugins(loaded)
    assert problems == ()
    assert {team: [each.name for each in guards_of(loaded, plugins, team)] for team in ("all", "own", "none")} == {
        "all": ["second", "first"],
        "own": ["first", "second"],
        "none": [],
    }
    assert passed_plugins(loaded, plugins, "own") == (
        *("first (request guard, answer guard)", "second (request guard, answer guard)", "sink (usage sink)"),
    )


def test_a_sink_in_a_team_s_list_is_refused(tmp_path: Path) -> None:
    (problem,) = refused(TEAMS.replace("[first,", "[sink,"), tmp_path)
    assert "teams.own.plugins.0: this plugin is a usage sink, which gets the requests of all teams" in problem
