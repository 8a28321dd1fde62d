"""The current prices with their sources, and the changes that newer data would make."""

from collections.abc import Callable

import pytest
import yaml

from proxy.cli.prices.prices_command import FORMS, prices
from proxy.cli.terminal import CommandError
from proxy.process.load_table import Source
from tests.proxy.cli.conftest import CANARY

Writer = Callable[[str], Source]
Output = pytest.CaptureFixture[str]

TABLE = f"""\
version: 1
vendors:
  openai: {{api_key: {CANARY}}}
  azure: {{api_key: {CANARY}, url_params: {{resource: acme}}}}
models:
  openai/gpt-4o: {{}}
  openai/o3: {{price: {{input: 1, output: 2}}}}
  openai/nothing-known: {{}}
  openai/gpt-4.1: {{price: none}}
  openai/*: {{}}
  azure/prod: {{base_model: openai/gpt-5.6-sol}}
routes: {{fast: azure/prod}}
"""


def lines(source: Source, capsys: Output, *names: str, form: str = "table") -> list[str]:
    assert prices(source, names, FORMS[form]) == 0
    return capsys.readouterr().out.splitlines()


def test_each_price_has_its_source(source: Writer, capsys: Output) -> None:
    told = {line.split()[0]: line for line in lines(source(TABLE), capsys)}
    assert told["openai/gpt-4o"].split()[1:4] == ["2.5", "10", "1.25"]
    assert told["openai/gpt-4o"].endswith("list of openai: gpt-4o")
    assert "written at" in told["openai/o3"]
    assert told["openai/nothing-known"].endswith("not known")
    assert told["openai/gpt-4.1"].endswith("none")
    assert told["openai/*"].endswith("list prices, by the model")
    assert told["azure/prod"].endswith("list of openai: gpt-5.6-sol, at the price of its maker")


def test_names_of_models_and_routes_are_looked_up(source: Writer, capsys: Output) -> None:
    told = lines(source(TABLE), capsys, "fast", "openai/gpt-4o-mini")
    assert [line.split()[0] for line in told[1:-1]] == ["azure/prod", "openai/gpt-4o-mini"]
    with pytest.raises(CommandError, match="no model or route made-up"):
        prices(source(TABLE), ["made-up"], FORMS["table"])


def test_list_prices_are_written_as_a_file_to_include(source: Writer, capsys: Output) -> None:
    written = yaml.safe_load("\n".join(lines(source(TABLE), capsys, form="yaml")))
    assert set(written["models"]) == {"openai/gpt-4o", "azure/prod"}
    assert written["models"]["azure/prod"]["price"]["long_context"][0]["above"] == 272_000
