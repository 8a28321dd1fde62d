"""Every name of a configuration with all of its targets, for the code that watches them."""

from proxy.routing.resolve_model import targets_of_names
from tests.proxy.kit.tables import snapshot

TABLE = snapshot(
    """
vendors:
  openai: {api_key: k}
  azure-eu: {profile: openai, api_key: k}
models:
  openai/gpt: {}
  azure-eu/gpt: {policy: weighted, deployments: {sweden: {weight: 3}, france: {}}}
  openai/hidden: {}
  openai/*: {deployments: {a: {}, b: {}}}
routes:
  fast: {targets: [openai/gpt, azure-eu/gpt]}
  cheap: {targets: [openai/any, fast, openai/gpt]}
  openai/hidden: azure-eu/gpt/france
"""
)


def test_each_route_and_model_has_all_its_targets_once_whatever_the_policy_and_the_load() -> None:
    names = {name: sorted(target.label for target in targets) for name, targets in targets_of_names(TABLE)}
    both = ["azure-eu/gpt/france", "azure-eu/gpt/sweden"]
    assert names == {
        "fast": [*both, "openai/gpt/default"],
        "cheap": [*both, "openai/*/a", "openai/*/b", "openai/gpt/default"],
        "openai/hidden": ["azure-eu/gpt/france"],
        "openai/gpt": ["openai/gpt/default"],
        "azure-eu/gpt": both,
        "openai/*": ["openai/*/a", "openai/*/b"],
    }


def test_a_table_without_routes_has_its_models() -> None:
    plain = snapshot("vendors: {openai: {api_key: k}}\nmodels: {openai/gpt: {}}\n")
    assert [name for name, _ in targets_of_names(plain)] == ["openai/gpt"]
