"""Warnings about hedging settings under which no model name can have a second attempt."""

from config.load_config import load_text
from tests.support.looped import looped

BASE = """version: 1
vendors: {v: {profile: openai_compatible, base_url: "http://127.0.0.1:1/v1", allow_private: true}}
models: {v/one: {}, v/two: {deployments: {a: {}, b: {}}}, "v/*": {deployments: {a: {}, b: {}}}}
"""
NONE = "has no effect: the name leads to one deployment"


def warnings(text: str) -> list[str]:
    return [f"{each.path}: {each.message}" for each in load_text(text, "t.yaml", {}).warnings if "hedge" in each.path]


@looped(
    ("routes", "named"),
    [
        ("one: {targets: [v/one], hedge: auto}", ["routes.one.hedge"]),
        ("two: {targets: [v/two], hedge: auto}", []),
        ("any: {targets: [v/new], hedge: auto}", []),
        ("pinned: {targets: [v/two/a], hedge: auto}", ["routes.pinned.hedge"]),
        ("both: {targets: [v/one, v/two/a], hedge: auto}", []),
        ("twice: {targets: [v/one, v/one], hedge: auto}", ["routes.twice.hedge"]),
        ("quiet: {targets: [v/one], hedge: off}", []),
        ("outer: {targets: [inner], hedge: auto}, inner: v/one", ["routes.outer.hedge"]),
    ],
)
def test_a_route_to_one_deployment_makes_none(routes: str, named: list[str]) -> None:
    assert warnings(f"{BASE}routes: {{{routes}}}\n") == [f"{name}: {NONE}" for name in named]


def test_a_model_with_one_deployment_makes_none_and_a_default_is_for_others() -> None:
    text = BASE.replace("v/one: {}", "v/one: {hedge: auto}").replace("deployments: {a", "hedge: auto, deployments: {a")
    assert warnings(text) == [f"models.v/one.hedge: {NONE}"]
    assert warnings(f"{BASE}defaults: {{hedge: auto}}\n") == []


def test_a_team_s_own_route_counts_too() -> None:
    team = "teams: {t: {keys: ['sha256:" + "0" * 64 + "'], routes: {r: {targets: [v/one], hedge: auto}, v/one: v/two}}}"
    assert warnings(f"{BASE}{team}\n") == []
