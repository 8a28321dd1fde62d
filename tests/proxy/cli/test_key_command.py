"""A new key works in every header, and its digest is the one that the gateway looks up."""

import hashlib
import math
import re
from datetime import UTC, datetime

import pytest

from config.load_config import load_text
from proxy.cli.key_command import KeyOptions, digest_line, key_new, new_key
from proxy.cli.terminal import USAGE
from proxy.teams.client_keys import MAX_KEY_LENGTH

NOW = datetime(2026, 11, 23, 9, 30, 15, 123456, tzinfo=UTC)
HEAD = "version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {}}\nroutes: {'no': mock/echo, '12': mock/echo}\n"


def test_a_key_has_a_prefix_and_at_least_192_random_bits_and_no_two_are_alike() -> None:
    found = re.fullmatch(r"drg_([A-Za-z0-9_-]+)", new_key())
    assert found is not None
    assert len(found[1]) * 6 >= 192
    assert len(found[0]) <= MAX_KEY_LENGTH
    assert len({new_key() for _ in range(100)}) == 100


def test_the_output_is_the_key_and_the_digest_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert key_new(KeyOptions(), NOW) == 0
    output = capsys.readouterr()
    key, digest = output.out.splitlines()
    assert digest == "sha256:" + hashlib.sha256(key.encode()).hexdigest()
    assert key not in output.err


def test_the_digest_line_is_what_a_table_takes() -> None:
    digest = digest_line(new_key())
    table = (
        f'version: 1\nvendors: {{mock: {{}}}}\nmodels: {{mock/echo: {{}}}}\nteams: {{search: {{keys: ["{digest}"]}}}}'
    )
    assert [own.digest for own in load_text(table, "t.yaml", {}).config.teams["search"].keys] == [digest]


def written(capsys: pytest.CaptureFixture[str], options: KeyOptions) -> tuple[str, str]:
    """Return the printed config entry, and the note that is printed with it."""
    assert key_new(options, NOW) == 0
    output = capsys.readouterr()
    key, entry = output.out.splitlines()
    assert digest_line(key) in entry
    assert key not in output.err
    return entry, output.err


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (KeyOptions(name="ci"), "name: ci"),
        (KeyOptions(name="null"), 'name: "null"'),
        (KeyOptions(name="12"), 'name: "12"'),
        (KeyOptions(name="1e5"), 'name: "1e5"'),
        (KeyOptions(expires="90d"), "expires: 2027-02-21T09:30:15Z"),
        (KeyOptions(expires="1h30m"), "expires: 2026-11-23T11:00:15Z"),
        (KeyOptions(expires="2027-03-01"), "expires: 2027-03-01"),
        (KeyOptions(expires="2027-03-01T00:00:00+02:00"), "expires: 2027-03-01T00:00:00+02:00"),
        (KeyOptions(models="mock/echo"), "models: [mock/echo]"),
        (KeyOptions(models="mock/*,*,no,12"), 'models: ["mock/*", "*", "no", "12"]'),
        (KeyOptions("find", "ci", "90d", "mock/echo"), "name: ci, expires: 2027-02-21T09:30:15Z, models: [mock/echo]"),
    ],
)
def test_a_table_takes_the_entry(capsys: pytest.CaptureFixture[str], options: KeyOptions, settings: str) -> None:
    entry, _ = written(capsys, options)
    assert re.sub(r'hash: "[^"]*", ', "", entry) == f"- {{{settings}}}"
    table = f"{HEAD}teams:\n  search:\n    models: ['*']\n    keys:\n      {entry}\n"
    (own,) = load_text(table, "t.yaml", {}).config.teams["search"].keys
    assert (own.name, own.models) == (options.name, None if options.models is None else options.models.split(","))
    assert (own.ends == math.inf) == (options.expires is None)


def test_a_team_alone_makes_the_digest_an_element_of_its_list(capsys: pytest.CaptureFixture[str]) -> None:
    entry, said = written(capsys, KeyOptions(team="search"))
    assert re.fullmatch(r'- "sha256:[0-9a-f]{64}"', entry)
    assert "`teams.search.keys`" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (KeyOptions(team="a/b"), "--team: a team name must be 1 to 64 letters"),
        (KeyOptions(name="a b"), "--name: the name of a key must be 1 to 64 letters"),
        (KeyOptions(name=""), "--name: the name of a key must be 1 to 64 letters"),
        (KeyOptions(expires="2020-01-01"), "--expires: lies in the past"),
        (KeyOptions(expires="0s"), "--expires: lies in the past"),
        (KeyOptions(expires="soon"), "--expires: must be a duration such as 90d, a date such as 2027-03-01, or a time"),
        (KeyOptions(expires="2027-02-30"), "--expires: must be a duration"),
        (KeyOptions(expires="999999999d"), "--expires: must be a duration"),
        (KeyOptions(models="a,,b"), "--models: must be *, vendor/*, a model"),
        (KeyOptions(models="v/*/x"), "--models: must be *, vendor/*, a model"),
    ],
)
def test_what_a_table_refuses_makes_no_key(capsys: pytest.CaptureFixture[str], options: KeyOptions, said: str) -> None:
    assert key_new(options, NOW) == USAGE
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"dragoman key new: {said}")
