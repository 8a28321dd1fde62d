"""`dragoman usage`: its report of a ledger, and its message if there is none."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from config.problem import ConfigError
from proxy.cli.arguments import argument_parser
from proxy.cli.terminal import USAGE, CommandError
from proxy.cli.usage import usage_command
from proxy.cli.usage.usage_command import UsageOptions, show_csv, show_json, show_table, usage
from proxy.ledger.journal_files import journal_file
from proxy.ledger.sqlite_store import SqliteStore
from proxy.process.load_table import Source
from tests.proxy.cli.conftest import TABLE
from tests.proxy.ledger.kit import journaled, line, sqlite

pytestmark = pytest.mark.processes


Writer = Callable[[str], Source]
Output = pytest.CaptureFixture[str]

OPTIONS = UsageOptions("team,model", "7d")


def filled(source: Source) -> Source:
    """Fill the ledger of a configuration with three requests of two teams."""
    assert source.path is not None
    store = SqliteStore(sqlite(source.path.parent))
    now = round(time.time() * 1000)
    store.add([journaled(1, now), journaled(2, now), journaled(3, now, "data")])
    store.close()
    return source


@pytest.mark.smoke
def test_people_see_a_table_and_how_far_it_is_loaded(source: Writer, capsys: Output) -> None:
    made = filled(source(TABLE))
    assert made.path is not None
    journals = sqlite(made.path.parent).journals
    journals.mkdir()
    journal_file(journals, "g1", 1).path.write_bytes(line(5))
    assert usage(made, OPTIONS, show_table) == 0
    out, err = capsys.readouterr()
    assert [row.split()[:3] for row in out.splitlines()] == [
        ["TEAM", "MODEL", "REQUESTS"],
        ["search", "fast", "2"],
        ["data", "fast", "1"],
        ["TOTAL", "3", "0"],
    ]
    assert "2 requests in the journals are not counted yet" in err


@pytest.mark.parametrize(
    ("place", "waiting", "noted"), [("ours", 7, True), ("ours", None, False), ("other.db", 7, False)]
)
def test_what_the_running_gateway_could_not_write_down_is_noted_too(
    source: Writer, capsys: Output, monkeypatch: pytest.MonkeyPatch, place: str, waiting: int | None, noted: bool
) -> None:
    made = filled(source(TABLE))
    assert made.path is not None
    named = made.path.with_name("ledger.db") if place == "ours" else place
    told = json.dumps({"ledger": f"{named}, 9.0 s behind, 7 rows waiting", "ledger_rows_waiting": waiting})
    monkeypatch.setattr(usage_command, "fetched", lambda *_: (200, told.encode(), "127.0.0.1:9091"))
    assert usage(made, OPTIONS, show_table) == 0
    assert ("7 requests in the journals are not counted yet" in capsys.readouterr().err) is noted


def test_one_team_may_be_asked_for_and_one_that_the_table_no_longer_has(source: Writer, capsys: Output) -> None:
    made = filled(source(TABLE))
    assert usage(made, UsageOptions("key,day", "30d", "data"), show_json) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["key"], each["requests"]) for each in found["usage"]] == [("ci", 1)]
    without = source(TABLE[: TABLE.index("  data:")])
    assert usage(without, UsageOptions("team", "30d", "data"), show_csv) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert usage(without, UsageOptions("team", "2099-01-01", "data"), show_csv) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(("team", "meant"), [("nope", ""), ("serch", "; did you mean search?"), ("x\x1b[31m", "")])
def test_a_team_that_nobody_knows_is_an_error(source: Writer, team: str, meant: str) -> None:
    with pytest.raises(CommandError) as failed:
        usage(filled(source(TABLE)), UsageOptions("team", "7d", team), show_table)
    told = str(failed.value)
    assert told.endswith(f" in the configuration, and the ledger has no row of it{meant}")
    assert (failed.value.status, "\x1b" in told) == (1, False)


def test_a_team_of_the_table_without_rows_has_used_nothing(source: Writer, capsys: Output) -> None:
    more = TABLE + '  idle: {keys: ["sha256:' + "3" * 64 + '"], models: [fast]}\n'
    assert usage(filled(source(more)), UsageOptions("team", "7d", "idle"), show_csv) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("keys", [None, "- [", "a: b\n", "- nothing\n"])
def test_what_is_wrong_elsewhere_is_said_beside_the_report(source: Writer, capsys: Output, keys: str | None) -> None:
    made = filled(source(TABLE + "    keys_from: keys.yaml\n"))
    assert made.path is not None
    if keys is not None:
        (made.path.parent / "keys.yaml").write_text(keys)
    assert usage(made, OPTIONS, show_csv) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3
    assert err.startswith("dragoman: warning: ")
    assert "keys.yaml" in err
    assert "teams.data.keys_from" in err


def test_a_table_whose_ledger_is_not_made_yet_not_wanted_or_not_said_is_told_so(source: Writer) -> None:
    with pytest.raises(CommandError, match=r"there is no ledger .* yet"):
        usage(source(TABLE), OPTIONS, show_table)
    with pytest.raises(CommandError, match=r"the configuration has no ledger.*sqlite:ledger\.db"):
        usage(source("version: 1\nvendors: {mock: {}}\n"), OPTIONS, show_table)
    made = filled(source(TABLE.replace("vendors:", "server: {ledger: 7}\nvendors:", 1)))
    with pytest.raises(ConfigError, match=r"server\.ledger"):
        usage(made, OPTIONS, show_csv)


def test_what_is_no_question_is_wrong_usage(source: Writer) -> None:
    made = filled(source(TABLE))
    for options in (UsageOptions("colour", "7d"), UsageOptions("team", "soon")):
        with pytest.raises(CommandError, match=r"^--(by|since): ") as failed:
            usage(made, options, show_table)
        assert failed.value.status == USAGE


def test_the_command_line_names_one_form(tmp_path: Path) -> None:
    parser = argument_parser()
    assert parser.parse_args(["usage"]).output == "table"
    assert parser.parse_args(["usage", "--csv", "--by", "day"]).output == "csv"
    with pytest.raises(SystemExit):
        parser.parse_args(["usage", "--csv", "--json"])
