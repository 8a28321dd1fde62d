"""Exports of keys, teams and models from LiteLLM's endpoints and database, in each of their forms, and hostile
files.
"""

import json
from pathlib import Path

import pytest

from config.problem import ConfigError
from proxy.cli.imports.litellm.database_files import Exports, read_exports, row_label
from proxy.cli.imports.remarks import Remarks
from tests.support.looped import looped

DIGEST = "ab" * 32
CSV = (
    "token,key_alias,models,metadata,blocked,rpm_limit,expires\n"
    f'{DIGEST},mine,"{{gpt-4o,""a b""}}","{{""k"": 1}}",f,60,2031-01-01 00:00:00\n'
)


@looped(
    ("kind", "text", "paths"),
    [
        ("keys", json.dumps({"keys": [{"token": DIGEST, "key_alias": "k"}], "total_count": 1}), ["keys.k"]),
        ("keys", json.dumps([{"token": DIGEST}]), ["keys.abababab…"]),
        ("keys", json.dumps({"keys": [DIGEST]}), ["keys.abababab…"]),
        ("keys", json.dumps({"key": DIGEST, "info": {"key_alias": "k"}}), ["keys.k"]),
        ("keys", CSV, ["keys.mine"]),
        ("keys", json.dumps({"keys": []}), []),
        ("teams", json.dumps([{"team_id": "t", "team_alias": "Core"}]), ["teams.Core"]),
        ("teams", json.dumps({"teams": [{"team_id": "t"}], "total": 1}), ["teams.t"]),
        ("teams", json.dumps({"team_id": "t", "team_info": {"models": []}}), ["teams.t"]),
        ("models", json.dumps({"data": [{"model_name": "m"}]}), ["models.m"]),
    ],
)
def test_each_form_is_read(kind: str, text: str, paths: list[str], tmp_path: Path) -> None:
    file = tmp_path / "export"
    file.write_text(text, encoding="utf-8")
    database = read_exports(Exports(**{kind: (file,)}), Remarks())
    assert [".".join(map(str, row.path)) for row in getattr(database, kind)] == paths


@looped(
    ("text", "place"),
    [
        (json.dumps({"keys": [{"token": "cd" * 32}, {"token": DIGEST, "metadata": {"a/b~": [1]}}]}), "#/keys/1"),
        (json.dumps([{"token": "cd" * 32}, {"token": DIGEST, "metadata": {"a/b~": [1]}}]), "#/1"),
        (json.dumps({"key": DIGEST, "info": {"metadata": {"a/b~": [1]}}}), "#/info"),
        (json.dumps({"token": DIGEST, "metadata": {"a/b~": [1]}}), "#"),
    ],
)
def test_a_row_of_json_has_a_pointer_as_its_place(text: str, place: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text, encoding="utf-8")
    row = read_exports(Exports(keys=(file,)), Remarks()).keys[-1]
    assert str(row.node.at) == f"{file}{place}"
    inner = row.section("metadata").node.entries["a/b~"]
    assert str(inner.key_at) == f"{file}{place}/metadata/a~1b~0"
    row.report_key("metadata")
    assert str(row.remarks.problems[0]).startswith(f"{file}{place}/metadata keys.")


def test_a_row_of_csv_has_its_line(tmp_path: Path) -> None:
    file = tmp_path / "keys.csv"
    head, row = CSV.splitlines(keepends=True)
    file.write_text(head + row.replace("mine", '"two\nlines"') + row, encoding="utf-8")
    found = read_exports(Exports(keys=(file,)), Remarks()).keys
    assert [str(each.node.at) for each in found] == [f"{file}:2:1", f"{file}:4:1"]
    assert str(found[1].node.entries["models"].key_at) == f"{file}:4:1"


def test_cells_of_a_csv_are_values(tmp_path: Path) -> None:
    file = tmp_path / "keys.csv"
    file.write_text(CSV, encoding="utf-8")
    (row,) = read_exports(Exports(keys=(file,)), Remarks()).keys
    assert (row.texts("models"), row.section("metadata").number("k")) == (["gpt-4o", "a b"], 1)
    assert (row.flag("blocked"), row.number("rpm_limit")) == (False, 60)


@looped(
    ("text", "reason"),
    [
        ("", "is neither JSON nor CSV"),
        ("{", "is neither JSON nor CSV"),
        ('{"error": {"message": "sk-canary"}}', "is not a list of keys"),
        ('{"teams": [{"team_id": "t"}]}', "is not a list of keys"),
        ("[" * 100_000, "is neither JSON nor CSV"),
        ('[{"token": ' + "[" * 60 + "]" * 60 + "}]", "nested deeper than 40 levels"),
        ("a\0b", "is neither JSON nor CSV"),
    ],
)
def test_a_file_that_is_none_is_one_line_without_its_content(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_exports(Exports(keys=(file,)), Remarks())
    assert reason in str(raised.value)
    assert "canary" not in str(raised.value)
    with pytest.raises(ConfigError, match="cannot read the file"):
        read_exports(Exports(keys=(tmp_path / "gone",)), Remarks())


def test_a_label_is_no_secret() -> None:
    assert [row_label(each) for each in ("team a", "sk-canary-secret", DIGEST)] == ["team a", "sk-canar…", "abababab…"]
