"""The address of the ledger, by default and as configured; the address is a secret."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from config.load_config import Loaded, examine_embedded, load_file, load_text
from config.problem import ConfigError
from config.sections.ledger_section import LedgerLocation, LedgerSection

HEAD = "version: 1\nvendors: {v: {}}\nmodels: {v/m: {}}\n"
TEAMS = f"teams: {{t: {{keys: ['sha256:{'a' * 64}'], models: ['*']}}}}\n"
POSTGRES = "postgresql://dragoman:canary@db.internal:5432/ledger?sslmode=require"
DAY = 86400.0


def load(folder: Path, ledger: str, teams: str = TEAMS) -> Loaded:
    file = folder / "table.yaml"
    file.write_text(f"{HEAD}{teams}{f'server: {{ledger: {ledger}}}' if ledger else ''}\n", encoding="utf-8")
    return load_file(file, {"URL": POSTGRES})


def place(folder: Path, ledger: str, teams: str = TEAMS) -> LedgerLocation | None:
    return load(folder, ledger, teams).ledger


def test_a_table_with_teams_has_its_ledger_beside_it(tmp_path: Path) -> None:
    assert place(tmp_path, "") == LedgerLocation(
        *(tmp_path / "ledger.db", None, 400 * DAY, "allow"), tmp_path / "ledger.db.journal"
    )
    assert place(tmp_path, "", teams="") is None


def test_a_table_that_is_no_file_has_none_unless_it_says_where() -> None:
    assert load_text(HEAD + TEAMS, "t.yaml", {}).ledger is None
    assert examine_embedded({}).sound().ledger is None
    written = load_text(HEAD + "server: {ledger: 'sqlite:x.db'}", "folder/t.yaml", {}).ledger
    assert written is not None
    assert written.file == Path("folder/x.db")


@pytest.mark.parametrize("ledger", ["off", "'off'", "{url: off}", "{url: 'off', keep: 40d}", "false"])
def test_off_is_none(tmp_path: Path, ledger: str) -> None:
    assert place(tmp_path, ledger) is None


@pytest.mark.parametrize("ledger", ["{url: 'sqlite:sub/l.db', keep: 90d, unread: reject}", "'sqlite:sub/l.db'"])
def test_a_file_is_relative_to_the_table(tmp_path: Path, ledger: str) -> None:
    found = place(tmp_path, ledger, teams="")
    assert found is not None
    assert (found.file, found.postgres) == (tmp_path / "sub" / "l.db", None)
    assert (found.keep, found.unread) == ((90 * DAY, "reject") if "keep" in ledger else (400 * DAY, "allow"))


def test_a_file_may_have_a_whole_path(tmp_path: Path) -> None:
    found = place(tmp_path, "'sqlite:/var/lib/l.db'")
    assert found is not None
    assert found.file == Path("/var/lib/l.db")


def test_keep_alone_leaves_the_place(tmp_path: Path) -> None:
    assert place(tmp_path, "{keep: 90d}") == LedgerLocation(
        *(tmp_path / "ledger.db", None, 90 * DAY, "allow"), tmp_path / "ledger.db.journal"
    )


@pytest.mark.parametrize("ledger", ["'${URL}'", "{url: '${URL}'}", f"'{POSTGRES}'"])
def test_the_password_of_postgresql_is_never_shown(tmp_path: Path, ledger: str) -> None:
    loaded = load(tmp_path, ledger)
    assert loaded.ledger is not None
    assert loaded.ledger.postgres is not None
    assert loaded.ledger.postgres.get_secret_value() == POSTGRES
    assert "canary" not in f"{loaded.ledger!r} {loaded.config!r} {loaded.config.model_dump_json()}"


@pytest.mark.parametrize(
    ("ledger", "told"),
    [
        ("'mysql://u:canary@h/db'", "server.ledger: must be sqlite:FILE, postgresql://… or off, such as"),
        ("{url: 'sqlite:'}", "server.ledger.url: must name a file after sqlite:"),
        ("{keep: 30d, url: off}", ""),
        ("{keep: 1h}", "server.ledger.keep: must be at least 1d"),
        ("{keep: forever}", "server.ledger.keep: must be a duration"),
        ("{unread: maybe}", "server.ledger.unread: must be allow or reject"),
        ("{path: x}", "server.ledger.path: unknown key"),
        ("{url: 5}", "server.ledger.url: expected text; YAML reads this unquoted word"),
        ("true", "server.ledger: expected off, an address or a mapping, found true or false"),
    ],
)
def test_a_mistake_is_told_at_its_place_without_the_address(tmp_path: Path, ledger: str, told: str) -> None:
    if not told:
        assert place(tmp_path, ledger) is None
        return
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, ledger)
    (problem,) = caught.value.problems
    assert f"{problem.path}: {problem.message}"[: len(told)] == told
    assert "canary" not in str(problem)


def test_only_postgresql_is_for_several_gateways() -> None:
    assert LedgerSection.model_validate(POSTGRES).is_postgres
    assert not LedgerSection.model_validate("sqlite:postgres.db").is_postgres
    assert not LedgerSection().is_postgres


def test_a_dump_says_which_ledger_it_is() -> None:
    urls = [LedgerSection.model_validate(url).model_dump()["url"] for url in ("off", "sqlite:l.db", POSTGRES)]
    assert urls == ["off", "sqlite:l.db", "**********"]


def test_an_error_of_the_section_hides_the_address() -> None:
    with pytest.raises(ValidationError) as caught:
        LedgerSection.model_validate({"url": "mysql://u:canary@h"})
    assert "canary" not in str(caught.value)


def test_journals_lie_beside_the_ledger_or_where_the_table_says(tmp_path: Path) -> None:
    for ledger, journals in (
        ("'sqlite:/var/lib/l.db'", Path("/var/lib/l.db.journal")),
        ('"${URL}"', tmp_path / "ledger.journal"),
        ('{url: "${URL}", journal: /var/lib/journal}', Path("/var/lib/journal")),
        ("{journal: j}", tmp_path / "j"),
    ):
        found = place(tmp_path, ledger)
        assert found is not None
        assert found.journals == journals
