"""The file of windows and prices: what is in it, that the table takes it, and that nothing is lost by writing it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from providers.pricing import Price
from proxy.cli.imports.prices_command import import_to_file, import_to_output
from proxy.cli.imports.written_file import write_new, write_over
from proxy.cli.main import main
from proxy.cli.terminal import CommandError
from proxy.process.load_table import Source
from tests.proxy.cli.conftest import CANARY, TABLE

Writer = Callable[[str], Source]
Output = pytest.CaptureFixture[str]

KNOWN = f"""\
version: 1
vendors:
  openai: {{api_key: {CANARY}}}
  bedrock: {{base_url: "https://bedrock-runtime.us-east-1.amazonaws.com", api_key: {CANARY}}}
  azure: {{api_key: {CANARY}}}
models:
  openai/gpt-4o-mini: {{}}
  openai/gpt-4o: {{price: {{input: 1, output: 2}}}}
  bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0: {{}}
  azure/gpt-4o:
    deployments:
      own: {{base_url: "https://acme.openai.azure.com", upstream_model: prod}}
      behind: {{base_url: "https://llm.example.com", upstream_model: prod}}
"""


def printed(source: Source, capsys: Output) -> str:
    assert import_to_output(source) == 0
    return capsys.readouterr().out


def comments(text: str) -> list[str]:
    return [line.strip(" #") for line in text.splitlines() if line.strip().startswith("#")]


def test_what_is_known_is_written_with_its_source(source: Writer, capsys: Output) -> None:
    text = printed(source(KNOWN), capsys)
    assert yaml.safe_load(text) == {
        "version": 1,
        "models": {
            "openai/gpt-4o-mini": {
                "context_window": 128000,
                "price": {"input": 0.15, "output": 0.6, "cached_input": 0.075},
            },
            "openai/gpt-4o": {"context_window": 128000},
            "bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0": {
                "context_window": 200000,
                "price": {"input": 1.1, "output": 5.5, "cached_input": 0.11, "cache_write": 1.375},
            },
        },
    }
    said = comments(text)
    assert said[0] == "What is known of the models of t.yaml, for a person to review."
    assert said[1].startswith("From the data of genai-prices 0.2.")
    assert "genai-prices: openai gpt-4o-mini." in said
    assert "The table says itself: price." in said


def test_what_is_not_known_is_listed_and_not_invented(source: Writer, capsys: Output) -> None:
    text = printed(source(TABLE.replace("gpt-4o-mini", "gpt-0")), capsys)
    assert set(yaml.safe_load(text)["models"]) == {"anthropic/claude-haiku-4-5"}
    assert comments(text)[-6:] == [
        "Nothing to write for:",
        "openai/gpt-0: openai has no model gpt-0 in the data",
        "azure-eu/gpt-4o: no prices are known at swe.example.com",
        "gpu/llama: no prices are known at 10.0.0.1:8000",
        "mock/*: it stands for any model: write a row for each that is used",
        "fireworks/*: it stands for any model: write a row for each that is used",
    ]


def test_deployments_that_differ_are_left_to_a_person(source: Writer, capsys: Output) -> None:
    told = "{context_window: 128000, price: {input: 2.5, output: 10, cached_input: 1.25}}"
    expected = f"azure/gpt-4o: its deployments differ, own: {told}, behind: unknown"
    assert comments(printed(source(KNOWN), capsys))[-1] == expected


def test_a_table_of_which_nothing_is_known_gives_a_file_that_can_be_included(capsys: Output) -> None:
    assert yaml.safe_load(printed(Source(None, {}), capsys)) == {"version": 1, "models": {}}


def test_the_table_takes_what_was_written(source: Writer, tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "prices.yaml"
    assert import_to_file(source(KNOWN), path, write_new) == 0
    assert capsys.readouterr().out == f"Review {path}, then name it in the table: `include: [prices.yaml]`\n"
    including = source(KNOWN + "include: [prices.yaml]\n")
    prices = {model.name: model.targets[0].price for model in including.load().snapshot.models.values()}
    assert prices == {
        "openai/gpt-4o-mini": Price(0.15, 0.6, 0.075),
        "openai/gpt-4o": Price(1, 2),
        "bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0": Price(1.1, 5.5, 0.11, 1.375),
        "azure/gpt-4o": None,
    }


def test_a_file_is_renewed_although_the_table_includes_it(source: Writer, tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    import_to_file(source(KNOWN), path, write_new)
    first = path.read_text(encoding="utf-8")
    path.write_text(first.replace("0.15", "99"), encoding="utf-8")
    import_to_file(source(KNOWN + "include: [prices.yaml]\n"), path, write_over)
    assert path.read_text(encoding="utf-8") == first
    assert {each.name for each in tmp_path.iterdir()} == {"t.yaml", "prices.yaml"}


def test_a_price_from_above_the_models_is_the_operators_word_too(source: Writer, capsys: Output) -> None:
    table = KNOWN.replace(
        f"openai: {{api_key: {CANARY}}}", f"openai: {{api_key: {CANARY}, price: {{input: 0, output: 0}}}}"
    )
    assert yaml.safe_load(printed(source(table), capsys))["models"]["openai/gpt-4o-mini"] == {"context_window": 128000}


def test_a_file_that_is_there_stays(source: Writer, tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(CommandError, match=r"prices\.yaml is there already; --force writes over it$"):
        import_to_file(source(KNOWN), path, write_new)
    assert path.read_text(encoding="utf-8") == "mine"
    source(KNOWN)
    arguments = ["prices", "import", "-c", str(tmp_path / "t.yaml"), "-o", str(path)]
    assert main(arguments) == 1
    assert capsys.readouterr().err == f"dragoman: {path} is there already; --force writes over it\n"
    assert main([*arguments, "--force"]) == 0
    assert path.read_text(encoding="utf-8").startswith("# What is known of the models of t.yaml")


def test_a_place_that_cannot_be_written_is_named(source: Writer, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^cannot write .*nowhere/prices\.yaml: No such file or directory$"):
        import_to_file(source(KNOWN), tmp_path / "nowhere" / "prices.yaml", write_new)


def test_no_secret_is_written(source: Writer, capsys: Output) -> None:
    assert CANARY not in printed(source(TABLE), capsys)
