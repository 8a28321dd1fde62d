"""`dragoman import`: the configuration goes to standard output or a file, remarks to standard error. Hostile files."""

import json
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.problem import ConfigError
from config.reading.yaml_tree import parse
from proxy.cli.imports import import_command as command
from proxy.cli.imports.import_command import READERS, import_to_file, import_to_output, json_as_yaml, read
from proxy.cli.imports.write_yaml import table_text
from proxy.cli.imports.written_file import write_new
from proxy.cli.main import main
from proxy.cli.terminal import FAILED, INCOMPLETE, UNEQUIPPED
from tests.proxy.cli.imports.kit import FIXTURES
from tests.support.looped import looped

Output = pytest.CaptureFixture[str]
CONFIG = """\
model_list:
- {model_name: fast, litellm_params: {model: openai/gpt-4o, api_key: sk-canary, rpm: 3}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def test_the_table_is_printed_and_the_rest_is_told(config: Path, capsys: Output) -> None:
    assert import_to_output("litellm", config, "config") == 0
    output = capsys.readouterr()
    assert yaml.safe_load(output.out)["routes"] == {"fast": "openai/gpt-4o"}
    told = output.err.splitlines()
    assert told[0].startswith(f"{config}:2:61 model_list.0.litellm_params.api_key: ")
    assert told[0].endswith(": a credential is not copied: put it into the environment as OPENAI_API_KEY")
    assert told[1].startswith("rpm and tpm of a deployment are limits here, ")
    assert told[1].endswith("Take `limits` away where the vendor has no such limit: fast.")
    assert told[2:] == [
        "LiteLLM listens on 0.0.0.0:4000 unless its command line differs; this configuration listens on 127.0.0.1:8080 "
        "(server.host, server.port).",
        "the config file refers to 1 environment variables: OPENAI_API_KEY",
        "not set here, and checked with samples: OPENAI_API_KEY",
        "ok: 1 vendor, 1 model, 1 deployment, 1 route, 0 teams",
        "taken: 1 of 1 model, nothing left out",
    ]
    assert "canary" not in output.out + output.err


def test_a_file_is_written_and_checked(config: Path, tmp_path: Path, capsys: Output) -> None:
    output = tmp_path / "table.yaml"
    assert import_to_file("litellm", config, "config", output, write_new) == 0
    assert capsys.readouterr().out == ""
    assert yaml.safe_load(output.read_text(encoding="utf-8"))["version"] == 1
    assert main(["import", "litellm", str(config), "-o", str(output)]) == 1
    assert capsys.readouterr().err == f"dragoman: {output} already exists; --force overwrites it\n"
    assert main(["import", "litellm", str(config), "-o", str(output), "--force"]) == 0


def test_a_table_that_only_this_machine_cannot_serve_is_told_from_one_that_none_can(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG + "router_settings: {redis_host: localhost, redis_port: 6379, made_up: 1}\n", "utf-8")
    assert import_to_output("litellm", path, "config") == INCOMPLETE
    monkeypatch.setattr("proxy.optional_libraries._present", lambda module: False)
    assert import_to_output("litellm", path, "config") == UNEQUIPPED
    told = capsys.readouterr().err.splitlines()
    assert any("an extra: make extras" in line for line in told)
    assert told[-2:] == [
        "taken: 1 of 1 model, 1 setting without counterpart",
        "the configuration is valid; this machine lacks the dependencies that the lines above name",
    ]
    path.write_text(CONFIG.replace("rpm: 3", "api_base: 'http://8.8.8.8/v1'"), encoding="utf-8")
    assert import_to_output("litellm", path, "config") == FAILED


def test_what_is_written_routes_as_it_is_shown(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = FIXTURES / "portkey" / "fallback.json", tmp_path / "table.yaml"
    assert main(["import", "portkey", str(source), "--name", "best", "-o", str(output)]) == 0
    for name in ("OPENAI_PROD_API_KEY", "ANTHROPIC_PROD_API_KEY"):
        monkeypatch.setenv(name, f"own-{name}")
    assert main(["check", str(output)]) == 0
    assert main(["routes", str(output)]) == 0
    shown = capsys.readouterr().out
    assert "best   -     priority  -       openai-prod/gpt-4o" in shown


def test_a_table_that_cannot_be_served_is_status_1(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG.replace("rpm: 3", "api_base: 'http://8.8.8.8/v1'"), encoding="utf-8")
    assert main(["import", "litellm", str(path)]) == 1
    output = capsys.readouterr()
    assert "standard-output.yaml:" in output.err
    assert "https required" in output.err
    assert output.out.startswith("# From config.yaml")


@pytest.mark.parametrize("text", ["a: 1", "model_list: 7", "model_list: [1, {model_name: x}]"])
def test_a_file_without_a_model_is_status_1(text: str, tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(["import", "litellm", str(path)]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("the configuration has no model")


@looped("text", ["\U0001f600", 'a"\\b/\U0001f600', "\\ud83d", "\t\u2028\x7f"])
def test_json_is_read_whatever_is_escaped(text: str) -> None:
    for written in (json.dumps({"a": text}, indent="\t"), json.dumps({"a": text}).replace("/", "\\/")):
        assert yaml.safe_load(json_as_yaml(written)) == {"a": text}


def test_variables_that_are_set_are_checked_so(config: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "two words")
    assert import_to_output("litellm", config, "config") == 1
    told = capsys.readouterr().err
    assert "not set here" not in told
    assert "two words" not in told


def test_many_losses_are_cut_on_the_terminal(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MAX_REMARK_LINES", 1)
    path = tmp_path / "config.json"
    path.write_text('{"provider": "openai", "cache": 1, "metadata": 1, "hooks": 1}', encoding="utf-8")
    assert import_to_output("portkey", path, "x") == INCOMPLETE
    output = capsys.readouterr()
    assert "and 2 more, which are comments in the config file" in output.err
    assert output.out.count("#") == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1 is not a configuration of litellm: not a mapping"),
        ("[]", "1:1 is not a configuration of litellm: not a mapping"),
        ("a: [", "2:1 not YAML"),
        ("a: &a [*a]", "this alias (*) stands inside its own anchor"),
        ("[" * 100_000, "nested deeper than 40 levels"),
        ("x: " + "y" * 2**20, "1:1 cannot read the file: larger than 1024 KiB"),
        ("a: \x00", "is not allowed in YAML"),
    ],
    ids=["empty", "list", "broken", "loop", "deep", "large", "control"],
)
def test_a_file_that_cannot_be_read_is_one_line(text: str, message: str, tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(["import", "litellm", str(path)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"{path}:")
    assert message in output.err
    assert output.err.count("\n") == 1


def test_an_alias_bomb_is_refused(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "config.yaml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert main(["import", "bifrost", str(path)]) == 1
    assert "more than 400000 values, with every alias written out" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["gone.yaml", "."])
def test_a_file_that_is_none_is_one_line(path: str, tmp_path: Path, capsys: Output) -> None:
    assert main(["import", "litellm", str(tmp_path / path)]) == 1
    assert "cannot read the file" in capsys.readouterr().err


ODD: st.SearchStrategy[object] = st.sampled_from(
    [
        *(None, True, 0, -1, 1e300, 10**17, "", "x", "a/b", "*", "${X}", "os.environ/", "env.", "@a/b", "-", "key: v"),
        *("\x85\u2028", "\U0001f600", "a b" * 200, "http://[::1]:99999"),
        *([], {}, [[]], [{}], [None, 7], {"": ""}, {"x": {"y": [1]}}),
    ]
)
FILES = sorted(path for gateway in READERS for path in (FIXTURES / gateway).iterdir())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_odd_values_anywhere_are_told_and_never_raise(data: st.DataObject, tmp_path: Path) -> None:
    file = data.draw(st.sampled_from(FILES))
    tree = {"root": yaml.safe_load(file.read_text(encoding="utf-8").replace("\t", " "))}
    for _ in range(data.draw(st.integers(1, 3))):
        inner, key = data.draw(st.sampled_from(list(places(tree))))
        inner[key] = deepcopy(data.draw(ODD))
    path = tmp_path / "config.json"
    path.write_text(json.dumps(tree["root"], ensure_ascii=False), encoding="utf-8")
    try:
        draft, remarks = read(file.parent.name, path, "name")
    except ConfigError:
        return
    assert parse(table_text(draft), "t.yaml").problems == ()
    assert all("\n" not in str(problem) for problem in remarks.problems)


def places(tree: object) -> list[tuple[dict[object, object], object]]:
    """Yield every position of a value in a tree, as its container and key."""
    found: list[tuple[dict[object, object], object]] = []
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in pairs:
        found.append((tree, key))  # type: ignore[arg-type]
        found += places(value)
    return found
