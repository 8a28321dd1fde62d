"""The reference of the configuration."""

import re

import pytest

from config.table.table_json_schema import json_schema
from tests.docs.config_page import BEGIN, END, PAGE, reference, section_classes, updated
from tests.docs.default_meanings import DEFAULT_MEANINGS


def cells() -> list[tuple[str, ...]]:
    """Each row of the reference: key, kind of value, default and description."""
    rows = [line for line in reference(json_schema()).splitlines() if line.startswith("| `")]
    return [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]) for row in rows]


def test_the_page_holds_the_generated_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == updated(text), "run `make generate`"


def test_every_key_has_a_default_and_no_description_repeats_it() -> None:
    assert [row[0] for row in cells() if not row[2]] == [], "add them to tests/docs/default_meanings.py"
    assert [row[0] for row in cells() if "Built in:" in row[3]] == []
    defaults = {key: default for key, _, default, _ in cells()}
    assert [defaults[f"`{key}`"] for key in ("first_event", "keep_alive", "drain_grace")] == ["`60s`", "`20s`", "`1s`"]
    assert defaults["`tls`"] == "none (plain HTTP)"
    assert defaults["`requests_per_day`"] == "none (no limit)"
    assert defaults["`answer`"].startswith("120s, or first_event ")
    assert defaults["`timeouts`"] == "the defaults of its keys"


def test_every_meaning_is_of_a_key() -> None:
    keys = {name: set(section.model_fields) for name, section in section_classes().items()}
    every = {"include"}.union(*keys.values())
    unknown = [
        entry
        for entry in DEFAULT_MEANINGS
        if (parts := entry.partition("."))[2] not in (keys[parts[0]] if parts[0] else every)
    ]
    assert unknown == []


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


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="mark"):
        updated(f"no {BEGIN}")
