"""The tables of keys in the README."""

import pytest

from config.generate_readme import BEGIN, END, README, reference, updated
from config.table.table_json_schema import json_schema


def test_the_readme_holds_the_generated_tables() -> None:
    text = README.read_text(encoding="utf-8")
    assert text == updated(text)


def test_every_key_is_in_the_tables() -> None:
    schema = json_schema()
    tables = reference(schema)
    sections = [schema, *schema["$defs"].values()]
    sections += [option for section in sections for option in section.get("anyOf", ())]
    keys = {name for section in sections for name in section.get("properties", {})}
    assert [key for key in keys if f"| `{key}` |" not in tables] == []


def test_a_row_says_what_a_value_is_and_what_it_is_without() -> None:
    rows = reference(json_schema()).splitlines()
    assert "| `port` | number | `8080` | Port to listen on; 0 takes a free one. |" in rows
    assert (
        "| `policy` | `priority` or `weighted` or `round_robin` or `least_busy` or `fastest` | `priority` | "
        in "\n".join(rows)
    )
    assert any(row.startswith("| `token` | secret |") for row in rows)
    assert any(row.startswith("| `version` | `1` | required |") for row in rows)
    assert any(row.startswith("| `idle` | duration |") for row in rows)


def test_only_what_is_between_the_marks_changes() -> None:
    text = updated(f"before {BEGIN} stale words {END} after")
    assert text.startswith(f"before {BEGIN}\n")
    assert text.endswith(f"\n{END} after")
    assert "stale words" not in text


def test_a_readme_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="mark"):
        updated(f"no {BEGIN}")
