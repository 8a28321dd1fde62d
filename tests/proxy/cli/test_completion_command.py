"""The completion scripts: each is run by its shell, if it is installed, and offers the right words."""

import shutil
import subprocess
from collections.abc import Sequence

import pytest

from proxy.cli.arguments import SHELLS, argument_parser
from proxy.cli.completion_command import SCRIPTS, completion, places
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


TREE = argument_parser().tree()


def script(shell: str) -> str:
    return "".join(f"{line}\n" for line in SCRIPTS[shell](TREE))


def run(shell: str, code: str, before: str = "") -> list[str]:
    """Return the lines that a shell prints when it runs `before`, the script and `after`."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    arguments = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [shell, *arguments, "-c", f"{before}\n{script(shell)}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def in_bash(*words: str) -> list[str]:
    quoted = " ".join(f"'{word}'" for word in words)
    code = f'COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _dragoman; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return [word for word in run("bash", code) if word]


def in_zsh(*words: str) -> list[str]:
    """Return the words that are offered. zsh itself filters them by the prefix that has been typed."""
    quoted = " ".join(f"'{word}'" for word in words)
    stubs = (
        "compadd() { shift; print -l -- $@ }; _files() { print files }; compset() { : }\n"
        "_describe() { local name=${@[-1]}; for each in ${(P)name}; do print -- ${each%%:*}; done }\n"
        f"words=({quoted}); CURRENT={len(words)}; _dragoman"
    )
    offered = run("zsh", stubs, before="compdef() { : }")
    return [word for word in offered if word.startswith(words[-1].rpartition("=")[2]) or word == "files"]


def in_fish(*words: str) -> list[str]:
    line = " ".join(words)
    return [each.partition("\t")[0] for each in run("fish", f"complete -C '{line}'")]


SHELL_RUNS = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}
CASES: list[tuple[Sequence[str], list[str]]] = [
    (["ch"], ["check"]),
    (["key", ""], ["new"]),
    (["import", ""], ["bifrost", "litellm", "portkey"]),
    (["import", "portkey", "--n"], ["--name"]),
    (["check", "--str"], ["--strict"]),
    (["check", "--output", ""], ["github", "json", "text"]),
    (["check", "--strict", "--output", "j"], ["json"]),
    (["explain", "--surface", "f"], ["fireworks"]),
    (["completion", ""], ["bash", "fish", "zsh"]),
    (["serve", "--admin"], ["--admin-port"]),
    (["serve", "--host", ""], []),
    (["logs", "--fai"], ["--failed"]),
    (["vendors", "--j"], ["--json"]),
]


@looped("shell", SHELLS)
@looped(("words", "offered"), CASES, ids=lambda case: " ".join(case))
def test_the_words_that_fit_come_out(shell: str, words: Sequence[str], offered: list[str]) -> None:
    assert sorted(SHELL_RUNS[shell]("dragoman", *words)) == offered


def test_a_value_after_an_equals_sign_is_completed() -> None:
    assert in_bash("dragoman", "check", "--output", "=") == ["text", "json", "github"]
    assert in_bash("dragoman", "check", "--output", "=", "j") == ["json"]


@pytest.mark.parametrize("shell", SHELLS)
def test_files_are_offered_where_a_file_is_wanted(
    shell: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("files")
    (folder / "my table.yaml").touch()
    monkeypatch.chdir(folder)
    for words in (["check", "m"], ["check", "-c", "m"], ["import", "litellm", "m"], ["explain", "m"]):
        (offered,) = SHELL_RUNS[shell]("dragoman", *words)
        assert offered.replace("\\", "") in ("my table.yaml", "files")


@looped("shell", SHELLS)
def test_every_command_and_option_of_the_parser_is_in_every_script(shell: str) -> None:
    text = script(shell)
    for path, command in places(TREE):
        assert path in text
        for option in command.options:
            for name in option.names:
                assert (name if shell != "fish" else name.lstrip("-")) in text


def test_the_script_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert completion(TREE, "bash") == 0
    assert capsys.readouterr().out == script("bash")
