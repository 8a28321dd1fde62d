"""The rows of vendors: that each loads, the values that it inherits, and the values that are refused."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from providers.failure import FailureKind
from providers.profile import TaskWire
from providers.profiles.load_profiles import ProfileError, load_profiles, parse_profiles
from providers.unified_request import Operation, Task
from tests.support.looped import looped

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "CONTRIBUTING.md"
REFERENCE = ROOT / "docs" / "reference" / "profiles.md"
KNOB = re.compile(r"`(\w+)`")


def test_only_local_servers_the_mock_and_open_installations_do_without_a_key() -> None:
    free = {name for name, profile in load_profiles().items() if not profile.key_required}
    local = {"nim_1", "vllm", "sglang", "llamacpp", "localai", "ollama", "lm_studio", "tgi", "tei"}
    native = {"ollama_native", "llamacpp_native", "tgi_native", "sglang_native", "triton", "llm_engine"}
    assert free == local | native | {"pais", "openai_compatible", "mock"}


def test_a_row_is_its_parents_with_its_own_members_above() -> None:
    rows = parse_profiles("""
parent:
  base_url: http://parent
  rename: {all: {seed: a, user: b}}
  accepts: {all: [top_k]}
  errors: {statuses: {402: quota}}
child:
  extends: parent
  rename: {all: {seed: c}}
  accepts: {all: [min_p]}
grandchild: {extends: child, base_url: http://grandchild}
""")
    child, grandchild = rows["child"], rows["grandchild"]
    assert child.base_url == "http://parent"
    wire = child.wires[Operation.CHAT]
    assert dict(wire.rename) == {"seed": "c", "user": "b"}
    assert {"min_p", "top_k"} & wire.accepts == {"min_p"}
    assert (grandchild.base_url, dict(grandchild.errors.statuses)) == ("http://grandchild", {402: FailureKind.QUOTA})
    assert grandchild.wires[Operation.CHAT] == wire


@looped(
    ("text", "complaint"),
    [
        ("- a", "must be a map of entries"),
        ("a: 1", "a: no such entry, or not a map"),
        ("a: {extends: b}", "b: no such entry, or not a map"),
        ("a: {extends: 1}", "a.extends: must be an entry's name"),
        ("a: {extends: b}\nb: {extends: a}", "a: extends itself"),
        ("a: {basurl: x}", "a.basurl: "),
        ("a: {auth: {stile: x}}", "a.auth.stile: "),
        ("a: {auth: {style: x}}", "a.auth.style: "),
        ("a: {auth: {fallback: oidc}}", "a.auth.fallback: "),
        ("a: {nearest: {x: [low]}}", "a.nearest: no unified field is called 'x'"),
        ("a: {needs: {metadata: x}}", "a.needs: no unified field is called 'x'"),
        ("a: {named_roles: [x]}", "a.named_roles.0: "),
        ("a: {tool_types: ['(']}", "a.tool_types: is not a pattern"),
        ("a: {auth: {fallback: aws}}", "a.auth.service: "),
        ("a: {auth: {fallback: entra}}", "a.auth.scope: "),
        ("a: {stop_most: many}", "a.stop_most: "),
        ("a: {bounds: {n: [1]}}", "a.bounds.n"),
        ("a: {bounds: {m: [1, 2]}}", "a.bounds: no unified field is called 'm'"),
        ("a: {accepts: {all: [topk]}}", "a.accepts.completions: no unified field is called 'topk'"),
        ("a: {refuses: {chat: [topk]}}", "a.refuses.chat: no unified field is called 'topk'"),
        ("a: {rename: {chat: {topk: x}}}", "a.rename.chat: no unified field is called 'topk'"),
        ("a: {structured: x}", "a.structured: no style is called 'x'"),
        ("a: {errors: {codes: {x: bad}}}", "a.errors.codes.x: "),
        ("a: {errors: {patterns: {'(': quota}}}", "a.errors.patterns: is not a pattern"),
        ("a: {errors: {patterns: {'no credit': quota}}}", "a.errors.patterns: no credit must match the whole message"),
        ("a: {errors: {patterns: {'^busy': overloaded}}}", "a.errors.patterns: ^busy must match the whole message"),
        ("a: {raw_prompts: '('}", "a.raw_prompts: is not a pattern"),
        ("a: {models: [{stop_most: 1}]}", "a.models.0.match: must be a pattern"),
        ("a: {models: [{match: x, stopmost: 1}]}", "a.models.0.stopmost: "),
        ("a: {context: {chat: maybe}}", "a.context.chat: "),
        ("a: {hooks: [tidy]}", "a.hooks.0: "),
        ("a: {frames: pages}", "a.frames: "),
        ("a: {errors: {text: '('}}", "a.errors.text: is not a pattern"),
        ("a: {before: {soon: {}}}", "a.before.soon"),
        ("a: {before: {'2024-09-01': {stopmost: 1}}}", "a.before.2024-09-01.stopmost: "),
        ("a: {models: [{match: x, before: {}}]}", "a.models.0.before: is not allowed here"),
        ("a: {before: {'2024-09-01': {models: []}}}", "a.before.2024-09-01.models: is not allowed here"),
    ],
)
def test_a_wrong_row_is_refused_naming_row_and_knob(text: str, complaint: str) -> None:
    with pytest.raises(ProfileError, match=re.escape(complaint)):
        parse_profiles(text)


def test_a_model_may_differ_from_its_vendor() -> None:
    profile = parse_profiles("a: {stop_most: 8, models: [{match: '^big', stop_most: 2, refuses: {all: [n]}}]}")["a"]
    assert (profile.for_model("small").stop_most, profile.for_model("big-1").stop_most) == (8, 2)
    assert "n" not in profile.for_model("big-1").wires[Operation.CHAT].accepts
    assert profile.for_model("small") is profile


def test_a_row_is_another_before_a_date_and_misses_what_it_missed_later() -> None:
    profile = parse_profiles("""
a:
  stop_most: 8
  before:
    '2024-09-01': {stop_most: 2}
    '2025-01-01': {usage: always, stop_most: 4}
  models: [{match: '^big', refuses: {all: [n]}}]
""")["a"]
    versions = ["2024-08-31-preview", "2024-09-01-preview", "2024-12-31", "2025-01-01", "preview", None]
    rows = [profile.for_version(version) for version in versions]
    assert [row.stop_most for row in rows] == [2, 4, 4, 8, 8, 8]
    assert [row.asks_usage for row in rows] == [False, False, False, True, True, True]
    assert rows[-1] is rows[-2] is profile
    assert "n" not in rows[0].for_model("big-1").wires[Operation.CHAT].accepts


def test_the_guides_worked_example_is_a_row_of_at_most_fifteen_lines() -> None:
    (example,) = re.findall(r"```yaml\n(# acme-ai.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(example.splitlines()) <= 15
    acme = parse_profiles(example)["acme"]
    assert acme.placeholders == ("region",)
    assert set(acme.wires) == {Operation.CHAT}
    assert acme.wires[Operation.CHAT].rename["seed"] == "random_seed"


def test_the_reference_has_every_key_that_a_profile_uses() -> None:
    rows = yaml.safe_load(files("providers.profiles").joinpath("profiles.yaml").read_text(encoding="utf-8"))
    used = {knob for row in rows.values() for part in (row, *row.get("models", ())) for knob in part} - {"match"}
    cells = re.findall(r"^\| (`.*?) \|", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert used <= {name for cell in cells for name in KNOB.findall(cell)}


def test_an_older_version_refuses_its_fields_of_every_model() -> None:
    row = parse_profiles("""
a:
  accepts: {chat: [metadata, store]}
  models: [{match: '^o3', refuses: {chat: [stop]}}, {match: '^o4', stop_most: 1}]
  before: {'2025-01-01': {refuses: {chat: [metadata]}}}
""")["a"]
    old = row.for_version("2024-06-01")
    assert "metadata" in row.for_model("o3").wires[Operation.CHAT].accepts
    assert {"metadata", "stop"}.isdisjoint(old.for_model("o3").wires[Operation.CHAT].accepts)
    for model in ("o4", "other"):
        assert "metadata" not in old.for_model(model).wires[Operation.CHAT].accepts
        assert "store" in old.for_model(model).wires[Operation.CHAT].accepts


def test_fields_that_are_not_known_go_to_servers_of_openai_s_family_unless_the_row_refuses_them() -> None:
    rows = parse_profiles("a: {}\nb: {unknown_fields: refuse}\nc: {dialect: anthropic}")
    assert {name: row.forwards_unknown for name, row in rows.items()} == {"a": True, "b": False, "c": False}


def test_words_may_be_members_and_what_only_comes_near_is_listed() -> None:
    row = parse_profiles("""
a:
  words: {reasoning_effort: {none: {thinking: {type: disabled}}, max: high}}
  nearest: {reasoning_effort: [low]}
  needs: {metadata: store}
""")["a"]
    assert row.words["reasoning_effort"] == {"none": {"thinking": {"type": "disabled"}}, "max": "high"}
    assert row.nearest == {"reasoning_effort": {"low"}}
    assert row.needs == {"metadata": "store"}


def test_a_row_names_the_tasks_that_the_vendor_takes_besides_generation() -> None:
    text = "v: {tasks: {embeddings: {path: /embed, form: cohere, most: 96, accepts: [dimensions]}, rerank: null}}"
    tasks = parse_profiles(text)["v"].tasks
    assert tasks == {Task.EMBEDDINGS: TaskWire("/embed", "cohere", 96, None, frozenset({"dimensions"}), {})}


def test_a_row_names_its_responses_api_and_the_models_that_reason_there() -> None:
    own = "path: /responses, reasoning: '^o[0-9]', format: f"
    rows = parse_profiles(
        f"v: {{responses: {{{own}}}, models: [{{match: pro, responses: {{when: always}}}}]}}\nw: {{}}"
    )
    wire, pro = rows["v"].responses, rows["v"].for_model("o3-pro").responses
    assert wire is not None
    assert pro is not None
    assert (wire.path, bool(wire.reasoning.search("o3")), wire.format) == ("/responses", True, "f")
    assert (wire.when, pro.when, pro.path, rows["w"].responses) == ("never", "always", "/responses", None)
    with pytest.raises(ProfileError, match=r"v\.responses\.reasoning"):
        parse_profiles("v: {responses: {path: /responses, reasoning: '(', format: f}}")


def test_the_vendors_that_take_requests_of_the_responses_api_are_openai_and_azure() -> None:
    wires = {name: row.responses for name, row in load_profiles().items() if row.responses is not None}
    assert {name for name, wire in wires.items() if wire.takes_own} == {"openai", "azure", "azure_v1"}
    assert {*wires} - {"openai", "azure", "azure_v1"} == {"xai", "perplexity"}


def test_a_packaged_profile_is_built_once_and_by_itself() -> None:
    profiles = load_profiles()
    assert profiles["openai"] is profiles["openai"]
    assert ("openai" in profiles, "nothing" in profiles, profiles.get("nothing")) == (True, False, None)
    assert len(profiles) == len(list(profiles)) == len(dict(profiles))
