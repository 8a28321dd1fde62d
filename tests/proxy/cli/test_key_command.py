"""A fresh key works in every header, and its digest is the one the gateway looks up."""

import hashlib
import re

import pytest

from config.load_config import load_text
from proxy.cli.key_command import digest_line, key_new, new_key
from proxy.teams.client_keys import MAX_KEY


def test_a_key_has_a_prefix_and_at_least_192_random_bits() -> None:
    found = re.fullmatch(r"drg_([A-Za-z0-9_-]+)", new_key())
    assert found is not None
    assert len(found[1]) * 6 >= 192
    assert len(found[0]) <= MAX_KEY


def test_no_two_keys_are_alike() -> None:
    assert len({new_key() for _ in range(100)}) == 100


def test_the_output_is_the_key_and_the_digest_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert key_new() == 0
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
