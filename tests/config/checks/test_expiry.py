"""Warnings of keys and certificates that expire."""

from datetime import UTC, datetime

import pytest

from config.checks.expiry import DAY, SOON, expiry, expiry_warnings
from tests.config.tables import BASE, NAME, load

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


def told(now: float) -> list[str]:
    return [str(problem).removeprefix(f"{NAME}:") for problem in expiry_warnings(load(TABLE), now)]


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (SOON + 1, None),
        (SOON, "expires in 14 days"),
        (SOON - 1, "expires in 13 days"),
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
    assert told(END - 2 * SOON) == []
    assert told(END - 3 * DAY) == [
        "13:101 teams.search.keys.1.not_after: the key ci expires in 3 days",
        "16:104 teams.ads.keys.0.not_after: this key expires in 3 days",
    ]


def test_a_team_without_a_key_that_lasts_is_reported() -> None:
    assert told(END + 365 * DAY) == [
        "13:101 teams.search.keys.1.not_after: the key ci has expired",
        "16:104 teams.ads.keys.0.not_after: this key has expired",
        "16:219 teams.ads.keys.1.not_after: this key has expired",
        "16:11 teams.ads.keys: every key of this team has expired: nobody can ask as this team",
    ]
