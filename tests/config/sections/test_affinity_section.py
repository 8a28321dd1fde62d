"""The `affinity` section: its short forms and its refusals."""

import pytest
from pydantic import ValidationError

from config.load_config import load_text
from config.problem import ConfigError
from config.sections.affinity_section import AffinitySection
from tests.support.looped import looped

BASE = """version: 1
vendors: {v: {profile: openai_compatible, base_url: "http://127.0.0.1:1/v1", allow_private: true}}
"""


@looped(("value", "mode"), [("auto", "auto"), ("off", "off"), (False, "off"), ({}, "auto"), ({"mode": False}, "off")])
def test_a_bare_word_is_the_mode(value: object, mode: str) -> None:
    made = AffinitySection.model_validate(value)
    assert (made.mode, made.key, made.load, made.least, made.send) == (mode, None, 1.5, 1024, False)


@looped(
    "value",
    [
        *("on", "", 5, True, [], None, {"load": 0.9}, {"load": 101}, {"least": -1}, {"key": []}, {"key": ["a b"]}),
        *({"key": ["x"] * 17}, {"key": ["x" * 65]}, {"key": [""]}, {"more": 1}, {"mode": "on"}, {"send": "yes"}),
    ],
)
def test_what_means_nothing_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        AffinitySection.model_validate(value)


@looped(
    ("rest", "problem"),
    [
        ("models: {v/m: {affinity: on}}", "models.v/m.affinity: expected auto, off or a mapping, found true or false"),
        ("models: {v/m: {affinity: of}}", "models.v/m.affinity: must be auto, off, or a mapping"),
        ("defaults: {affinity: {lod: 2}}", "defaults.affinity.lod: unknown key; did you mean load?"),
        ("models: {v/m: {}}\nroutes: {r: {targets: [v/m], affinity: {load: 0}}}", "load: must be at least 1"),
        ("models: {v/m: {deployments: {a: {affinity: off}}}}", "deployments.a.affinity: has no effect on a deployment"),
    ],
)
def test_a_mistake_is_told_where_it_is_written(rest: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_text(BASE + rest, "t.yaml", {})
    assert problem in "\n".join(map(str, refused.value.problems))


def test_a_route_and_a_model_take_it_from_the_environment_too() -> None:
    word, key = "affinity: ${MODE}", "affinity:\n      mode: ${MODE}"
    for written in (word, key):
        text = f"{BASE}models:\n  v/m:\n    {written}\nroutes:\n  r:\n    targets: [v/m]\n    {written}\n"
        config = load_text(text, "t.yaml", {"MODE": "off"}).config
        assert config.models["v/m"].affinity == config.routes["r"].affinity == AffinitySection(mode="off")


def test_an_unquoted_reference_to_off_is_that_word_wherever_it_may_stand() -> None:
    lines = ["cache: {where: X}", "retries: {safety: X}", "stream_upstream: X", "affinity: X"]
    block = "".join(
        f"  {line.replace('{', chr(10) + '    ').replace('}', '').replace('X', '${MODE}')}\n" for line in lines
    )
    made = load_text(f"{BASE}defaults:\n{block}models: {{v/m: {{}}}}", "t.yaml", {"MODE": "off"}).config.defaults
    assert made.cache is not None
    assert (made.cache.where, made.retries.safety, made.stream_upstream) == ("off", "off", "off")
    assert made.affinity == AffinitySection(mode="off")
