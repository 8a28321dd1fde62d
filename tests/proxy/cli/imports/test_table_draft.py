"""The configuration that an import builds."""

import pytest

from proxy.cli.imports.table_draft import Block, Reference, TableDraft, mapping


def test_a_block_is_made_once_and_keeps_its_order() -> None:
    block = Block()
    block.block("b").put("x", 1)
    block.block("b").put("y", None)
    block.put("a", 2)
    assert block.entries == {"b": Block({"x": 1}), "a": 2}
    with pytest.raises(TypeError):
        block.block("a")


def test_a_variable_keeps_its_first_sample() -> None:
    draft = TableDraft()
    assert draft.refer("A", "1") == draft.refer("A", "2") == Reference("${A}")
    assert draft.samples == {"A": "1"}
    assert draft.section("vendors") is draft.root.entries["vendors"]


def test_a_mapping_of_nothing_is_nothing() -> None:
    assert mapping({"a": None}) is None
    assert mapping({"a": None, "b": 1}) == Block({"b": 1})
