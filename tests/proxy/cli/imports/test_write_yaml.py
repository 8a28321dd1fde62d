"""Written YAML is read back unchanged, whatever its values."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from config.reading.expand_references import expand
from config.reading.yaml_tree import parse
from proxy.cli.imports.table_draft import Block, Reference, TableDraft
from proxy.cli.imports.write_yaml import scalar_text, table_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


def test_a_table_is_readable() -> None:
    draft = TableDraft()
    draft.root.comments.append("About it.")
    draft.section("vendors").put("openai", Block({"api_key": Reference("${KEY}")}))
    draft.section("vendors").put("azure", Block({}, ["No key."]))
    draft.section("models").put("openai/*", Block({"price": Block({"input": 0.15, "output": 1e-7})}, ["Any."]))
    draft.section("routes").put("fast", Block({"targets": ["a/b", Block({"target": "c/d", "weight": 2})]}))
    assert table_text(draft) == (
        "# About it.\n"
        "version: 1\n"
        "vendors:\n"
        '  openai: {api_key: "${KEY}"}\n'
        "  # No key.\n"
        "  azure: {}\n"
        "models:\n"
        '  "openai/*":\n'
        "    # Any.\n"
        "    price: {input: 0.15, output: 0.0000001}\n"
        "routes:\n"
        "  fast:\n"
        "    targets: [a/b, {target: c/d, weight: 2}]\n"
    )


def test_numbers_have_no_exponent() -> None:
    assert [scalar_text(each) for each in (True, 3, 0.000_000_1, 30.0, 0.0)] == ["true", "3", "0.0000001", "30", "0"]


@given(TEXTS | st.sampled_from(["<<", "on", "1_0", "~", "a: b", "- a", "#", "\ufeff", "${A}"]), TEXTS)
def test_any_text_is_read_back_as_itself(key: str, value: str) -> None:
    draft = TableDraft()
    draft.section("models").put(key, Block({key: value, "list": [value, value]}, [value]))
    text = table_text(draft)
    parsed = parse(text, "t.yaml")
    assert parsed.problems == ()
    written = yaml.safe_load(text)["models"][key]
    for each in written["list"] if key == "list" else [written[key]]:
        read = expand(each, {}, lambda _: "")
        assert (read.text, read.faults) == (value, ())


@given(TEXTS)
def test_no_comment_ends_its_line(comment: str) -> None:
    draft = TableDraft()
    draft.root.comments.append(comment)
    assert yaml.safe_load(table_text(draft)) == {"version": 1}
    assert parse(table_text(draft), "t.yaml").problems == ()


def test_a_name_in_a_comment_stays_whole() -> None:
    names = [f"some-model-of-a-maker-{number}" for number in range(40)]
    draft = TableDraft()
    draft.root.comments.append(", ".join(names))
    text = table_text(draft)
    assert text.count("\n") > 8
    assert all(name in text for name in names)
