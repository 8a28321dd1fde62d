"""Warnings about keys and certificates that expire."""

from datetime import UTC, datetime
from pathlib import Path

from config.checks.expiry import DAY, WARNING_TIME, expiry, expiry_warnings
from config.load_config import load_file
from tests.config.tables import BASE, NAME, load
from tests.support.looped import looped

ENDS = "2026-12-31T00:00:00Z"
END = datetime(2026, 12, 31, tzinfo=UTC).timestamp()
TABLE = f"""{BASE}teams:
  search:
    models: ["*"]
    keys:
      - sha256:{"a" * 64}
      - {{key: "sha256:{"b" * 64}", not_after: {ENDS}, name: ci}}
  ads:
    models: ["*"]
    keys: [{{key: "sha256:{"c" * 64}", not_after: {ENDS}}}, {{key: "sha256:{"d" * 64}", not_after: 2027-02-01}}]
"""


def warnings_at(now: float) -> list[str]:
    return [str(problem).removeprefix(f"{NAME}:") for problem in expiry_warnings(load(TABLE), now)]


@looped(
    ("left", "said"),
    [
        (WARNING_TIME + 1, None),
        (WARNING_TIME, "expires in 14 days"),
        (WARNING_TIME - 1, "expires in 13 days"),
        (DAY, "expires in 1 day"),
        (DAY - 1, "expires in less than a day"),
        (0.0, "has expired"),
        (-DAY, "has expired"),
        (float("inf"), None),
    ],
)
def test_what_ends_is_reported_two_weeks_before(left: float, said: str | None) -> None:
    assert expiry(END, END - left) == said


def test_a_key_that_ends_is_reported_where_its_end_is_written() -> None:
    assert warnings_at(END - 2 * WARNING_TIME) == []
    assert warnings_at(END - 3 * DAY) == [
        "13:101 teams.search.keys.1.not_after: the key ci expires in 3 days",
        "16:104 teams.ads.keys.0.not_after: this key expires in 3 days",
    ]


def test_a_key_of_a_file_is_reported_there(tmp_path: Path) -> None:
    (tmp_path / "keys.yaml").write_text(f"- hash: sha256:{'a' * 64}\n  name: ci\n  expires: 2020-01-01\n")
    table = "version: 1\nvendors: {v: {}}\nmodels: {v/m: {}}\nteams: {t: {keys_from: keys.yaml, models: ['*']}}\n"
    (tmp_path / "table.yaml").write_text(table)

    def found() -> list[str]:
        warnings = expiry_warnings(load_file(tmp_path / "table.yaml", {}), END)
        return [str(each).removeprefix(f"{tmp_path}/") for each in warnings]

    every = "table.yaml:4:24 teams.t.keys_from: every key of this team has expired: no client can use this team"
    assert found() == ["keys.yaml:3:12 teams.t.keys_from.0.expires: the key ci has expired", every]
    (tmp_path / "keys.yaml").write_text("")
    assert found() == []


def test_a_team_without_a_key_that_lasts_is_reported() -> None:
    assert warnings_at(END + 365 * DAY) == [
        "13:101 teams.search.keys.1.not_after: the key ci has expired",
        "16:104 teams.ads.keys.0.not_after: this key has expired",
        "16:219 teams.ads.keys.1.not_after: this key has expired",
        "16:11 teams.ads.keys: every key of this team has expired: no client can use this team",
    ]
