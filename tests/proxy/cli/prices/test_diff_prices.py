"""The differences between newer price data and the current prices, and between newer data and configured prices."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from proxy.cli.main import main
from proxy.cli.prices.diff_prices import newer_data
from proxy.cli.prices.prices_command import prices_diff
from proxy.cli.terminal import CommandError
from proxy.process.load_table import Source
from tests.proxy.cli.prices.test_prices_command import TABLE

Writer = Callable[[str], Source]
Output = pytest.CaptureFixture[str]

NEWER = """\
{"source":"genai-prices","version":"9","date":"2027-01-01"}
{"vendor":"openai","address":"https://api.openai.com","others":[]}
{"id":"gpt-4o","match":{"equals":["gpt-4o"]},"prices":[{"input":2,"output":10,"cached_input":1.25,"web_search":25}]}
{"id":"o3","match":{"equals":["o3"]},"prices":[{"input":1,"output":2.5}]}
"""


def test_what_newer_data_would_change_is_told_before_it_does(source: Writer, capsys: Output, tmp_path: Path) -> None:
    newer = tmp_path / "newer.jsonl"
    newer.write_text(NEWER, encoding="utf-8")
    assert prices_diff(source(TABLE), ["openai/gpt-4o", "openai/o3", "openai/gpt-4.1"], str(newer)) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("openai/gpt-4o: input 2.5 -> 2")
    assert "web_search unknown -> 25" in told[0] or "web_search" in told[0]
    assert told[1].startswith("openai/o3: output 2 -> 2.5 (written at ")
    assert len(told) == 2


def test_the_same_data_changes_nothing(source: Writer, capsys: Output) -> None:
    plain = TABLE.replace("price: {input: 1, output: 2}", "")
    assert prices_diff(source(plain), [], "installed") == 0
    assert capsys.readouterr().out.startswith("genai-prices 0.2.3")


def test_a_file_of_another_form_is_refused(source: Writer, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("[]", encoding="utf-8")
    with pytest.raises(CommandError, match="not in the form"):
        newer_data(str(other), date(2026, 1, 1))
    assert main(["prices", "-c", str(source(TABLE).path), "--diff", str(tmp_path / "none")]) == 1
