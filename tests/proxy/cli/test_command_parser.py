"""The error for a mistyped word suggests the nearest known one, in one line. The parser describes itself."""

import pytest

from proxy.cli.arguments import argument_parser
from proxy.cli.main import main

Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["chekc"], "dragoman: no such command: chekc; did you mean check?"),
        (["key", "nwe"], "dragoman key: no such command: nwe; did you mean new?"),
        (["import", "litelm", "x"], "dragoman import: no such value of GATEWAY: litelm; did you mean litellm?"),
        (["check", "--strct"], "dragoman check: no such option: --strct; did you mean --strict?"),
        (["check", "--outputt=json"], "dragoman check: no such option: --outputt; did you mean --output?"),
        (["check", "--output", "jsn"], "dragoman check: no such value of --output: jsn; did you mean json?"),
        (["serve", "--insecureopen"], "dragoman serve: no such option: --insecureopen; did you mean --insecure-open?"),
        (["--versoin"], "dragoman: no such option: --versoin; did you mean --version?"),
        (["--versoin", "check"], "dragoman: no such option: --versoin; did you mean --version?"),
        (["check", "a", "b"], "dragoman check: one argument too many: b"),
        (["completion", "tcsh"], "dragoman completion: no such value of shell: tcsh; known: bash, zsh, fish"),
        (["key", "zzz"], "dragoman key: no such command: zzz; known: new"),
        (["it's"], "dragoman: no such command: it's; did you mean limits?"),
        (["qqq"], "dragoman: no such command: qqq; known: demo, serve, "),
        (["a\nb"], "dragoman: no such command: a"),
        (["check", "--" + "x" * 5000], f"dragoman check: no such option: --{'x' * 58}...; known: -h, --help, "),
    ],
)
def test_a_mistyped_word_is_one_line_and_status_2(arguments: list[str], line: str, capsys: Output) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(line)
    assert told.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["key"], ["serve", "--port", "x"], ["explain"], ["check", "--output"]])
def test_any_other_mistake_shows_the_usage(arguments: list[str], capsys: Output) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: dragoman")


def test_an_option_may_be_shortened(capsys: Output) -> None:
    assert main(["check", "--str", "--out", "json"]) == 0
    assert capsys.readouterr().out.startswith("[")


def test_the_parser_describes_itself() -> None:
    tree = argument_parser().tree()
    assert {"serve", "check", "import", "completion"} <= tree.commands.keys()
    check = tree.commands["check"]
    assert check.summary.startswith("Print every problem")
    assert check.takes_files
    output = next(option for option in check.options if "--output" in option.names)
    assert (output.takes_value, output.choices, output.is_file) == (True, ("text", "json", "github"), False)
    config = next(option for option in check.options if "-c" in option.names)
    assert (config.names, config.is_file) == (("-c", "--config"), True)
    strict = next(option for option in check.options if "--strict" in option.names)
    assert not strict.takes_value
    assert tree.commands["import"].commands.keys() == {"litellm", "bifrost", "portkey"}
    assert not tree.commands["schema"].takes_files
