"""LiteLLM's groups, orders, aliases, patterns and fallbacks become routes."""

from pathlib import Path

import pytest

from proxy.cli.imports.endpoints import MAX_TARGETS
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for
from proxy.routing.snapshot import ANYONE
from tests.proxy.cli.imports.kit import Imported, imported
from tests.support.looped import looped


def entry(name: str, model: str, more: str = "") -> str:
    return f"- {{model_name: '{name}', litellm_params: {{model: '{model}'{more}}}}}\n"


def table(tmp_path: Path, entries: str, rest: str = "") -> Imported:
    path = tmp_path / "config.yaml"
    path.write_text(f"model_list:\n{entries}{rest}", encoding="utf-8")
    return imported("litellm", path)


TWO = entry("a", "openai/x") + entry("a", "groq/y") + entry("b", "openai/z") + entry("c", "mistral/w")


def test_a_group_with_fallbacks_is_a_route_of_its_own(tmp_path: Path) -> None:
    made = table(tmp_path, TWO, "litellm_settings: {fallbacks: [{a: [b]}, {b: [a]}], default_fallbacks: [c]}\n")
    routes = made.table.loaded.config.routes
    assert [target.target for target in routes["a"].targets] == ["a.group", "openai/z", "mistral/w"]
    assert [target.target for target in routes["b"].targets] == ["openai/z", "a.group", "mistral/w"]
    assert routes["a.group"].policy == "weighted"
    assert set(made.reached("a")[:2]) == {"openai/x/default", "groq/y/default"}
    assert made.reached("c") == ["mistral/w/default"]
    assert made.losses == []


def test_fallbacks_for_one_reason_are_models(tmp_path: Path) -> None:
    rest = "router_settings: {context_window_fallbacks: [{b: [a]}], content_policy_fallbacks: [{b: [c]}]}\n"
    fallbacks = table(tmp_path, TWO, rest).table.loaded.config.routes["b"].fallbacks
    assert (fallbacks.context_window, fallbacks.content_filter) == (["openai/x", "groq/y"], ["mistral/w"])


def test_an_order_is_a_priority_within_one_model_too(tmp_path: Path) -> None:
    made = table(tmp_path, entry("a", "openai/x", ", order: 2") + entry("a", "groq/y", ", order: 1"))
    assert made.reached("a") == ["groq/y/default", "openai/x/default"]
    entries = entry("a", "openai/x", ", order: 2, api_key: os.environ/B, organization: b")
    made = table(tmp_path, entries + entry("a", "openai/x", ", order: 1, api_key: os.environ/A"))
    assert made.reached("a") == ["openai/x/default-2", "openai/x/default"]


@pytest.mark.parametrize(
    ("strategy", "policy", "told"),
    [
        ("least-busy", "least_busy", False),
        ("latency-based-routing", "fastest", False),
        ("cost-based", "least_busy", True),
    ],
)
def test_strategies(strategy: str, policy: str, told: bool, tmp_path: Path) -> None:
    made = table(tmp_path, TWO, f"router_settings: {{routing_strategy: {strategy}}}\n")
    assert made.table.snapshot.routes["a"].policy == policy
    assert ("router_settings.routing_strategy" in made.lost) == told


def test_one_model_under_two_names_is_told_apart_by_deployment(tmp_path: Path) -> None:
    made = table(
        tmp_path,
        entry("eu", "openai/x", ", api_key: os.environ/EU") + entry("us", "openai/x", ", api_key: os.environ/US"),
    )
    assert made.reached("eu") == ["openai/x/default"]
    assert made.reached("us") == ["openai/x/default-2"]
    assert len(made.reached("openai/x")) == 2


def test_entries_that_are_the_same_are_one_deployment(tmp_path: Path) -> None:
    made = table(tmp_path, entry("a", "openai/x") * 2 + entry("b", "openai/x"))
    assert made.reached("a") == made.reached("b") == ["openai/x/default"]


def test_a_name_that_is_its_models_needs_no_route(tmp_path: Path) -> None:
    made = table(tmp_path, entry("openai/x", "openai/x"))
    assert made.reached("openai/x") == ["openai/x/default"]
    assert "routes" not in made.text


def test_a_name_that_is_another_models_leads_where_it_did(tmp_path: Path) -> None:
    made = table(tmp_path, entry("openai/x", "groq/y") + entry("b", "openai/x"))
    assert made.reached("openai/x") == ["groq/y/default"]
    assert made.reached("b") == ["openai/x/default"]


def test_patterns(tmp_path: Path) -> None:
    entries = (
        entry("*", "openai/*")
        + entry("anthropic/*", "anthropic/*")
        + entry("my/*", "groq/*")
        + entry("gpt-*", "openai/*")
    )
    made = table(tmp_path, entries)
    assert made.reached("gpt-9") == ["openai/gpt-9/default"]
    assert made.reached("my/llama") == ["my/llama/default"]
    assert made.table.snapshot.wildcards["my"].targets[0].profile.name == "groq"
    assert set(made.lost) == {"model_list.3"}


def test_a_fallback_may_be_one_deployment(tmp_path: Path) -> None:
    rest = "  model_info: {id: mine}\n"
    entries = "- model_name: a\n  litellm_params: {model: openai/x}\n" + rest + entry("b", "openai/z")
    made = table(tmp_path, entries, "router_settings: {fallbacks: [{b: [mine]}]}\n")
    assert made.reached("b") == ["openai/z/default", "openai/x/default"]


def test_what_leads_nowhere_is_told(tmp_path: Path) -> None:
    made = table(
        tmp_path,
        TWO,
        "router_settings: {fallbacks: [{gone: [a]}, {a: [gone, b]}, 7], "
        "model_group_alias: {x: gone, y: {model: b}, z: [1]}}\n",
    )
    assert set(made.lost) == {
        "router_settings.fallbacks.0.gone",
        "router_settings.fallbacks.1.a",
        "router_settings.fallbacks.2",
        "router_settings.model_group_alias.x",
        "router_settings.model_group_alias.z",
    }
    assert made.reached("y") == ["openai/z/default"]
    assert made.reached("a")[-1] == "openai/z/default"


def test_a_name_that_a_table_does_not_take_is_changed_and_told(tmp_path: Path) -> None:
    made = table(tmp_path, entry("my model", "openai/x"))
    assert made.reached("my-model") == ["openai/x/default"]
    assert "clients must use this one" in made.text


def test_names_that_become_alike_stay_apart(tmp_path: Path) -> None:
    known = {"my model": "openai/x", "my-model": "groq/y", "my+model": "mistral/z", "my-model.group": "cohere/w"}
    entries = "".join(entry(name, model) for name, model in known.items())
    made = table(tmp_path, entries, "router_settings: {fallbacks: [{my-model: [my model]}]}\n")
    assert made.reached("my-model") == ["groq/y/default", "openai/x/default"]
    assert made.reached("my-model-2") == ["openai/x/default"]
    assert made.reached("my-model-3") == ["mistral/z/default"]
    assert made.reached("my-model.group") == ["cohere/w/default"]


def test_the_first_entry_tells_whether_there_are_weights(tmp_path: Path) -> None:
    made = table(tmp_path, entry("a", "openai/x", ", weight: 3") + entry("a", "groq/y"))
    assert [(member.name, member.weight) for member in made.table.snapshot.routes["a"].members] == [
        ("openai/x", 3),
        ("groq/y", 0),
    ]
    one_model = "".join(
        entry("b", "openai/x", f", weight: {weight}, api_key: os.environ/K{weight}") for weight in (0, 5)
    )
    made = table(tmp_path, one_model)
    assert [target.weight for target in made.table.snapshot.models["openai/x"].targets] == [0, 5]


def test_defaults_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    made = table(tmp_path, TWO, "litellm_settings: {default_fallbacks: [gone], fallbacks: [{'*': [c, lost]}]}\n")
    assert set(made.lost) == {"litellm_settings.default_fallbacks", "litellm_settings.fallbacks.0.*"}
    assert made.reached("b") == ["openai/z/default", "mistral/w/default"]


def test_lists_do_not_multiply(tmp_path: Path) -> None:
    many = "".join(entry(f"m{i}", f"openai/x{i}") for i in range(100))
    names = ", ".join(f"m{i}" for i in range(100))
    made = table(
        tmp_path, many, f"litellm_settings: {{fallbacks: [{{m0: [{names}]}}], default_fallbacks: [{names}]}}\n"
    )
    assert max(len(route.members) for route in made.table.snapshot.routes.values()) <= MAX_TARGETS
    assert "litellm_settings.fallbacks.0.m0" in made.lost


def test_a_group_of_many_models_is_cut_and_told(tmp_path: Path) -> None:
    made = table(tmp_path, "".join(entry("m", f"openai/x{i}") for i in range(100)))
    assert len(made.table.snapshot.routes["m"].members) == MAX_TARGETS
    assert set(made.lost) == {f"model_list.{MAX_TARGETS}"}


VECTORS = (
    entry("e", "openai/text-embedding-3-small")
    + entry("e", "azure/text-embedding-3-small", ", api_base: 'https://x.openai.azure.com'")
    + entry("f", "cohere/embed-v4.0")
    + entry("g", "openai/gpt-4o")
    + entry("r", "jina_ai/jina-reranker-m0")
)


def test_models_that_do_not_chat_get_no_fallback_that_does(tmp_path: Path) -> None:
    rest = "router_settings: {default_fallbacks: [g], fallbacks: [{e: [f]}, {r: [e, g]}], model_group_alias: {n: e}}\n"
    made = table(tmp_path, VECTORS, rest)
    routes = made.table.loaded.config.routes
    assert {name: [target.target for target in route.targets] for name, route in routes.items()} == {
        "e": ["openai/text-embedding-3-small", "azure/text-embedding-3-small"],
        "f": ["cohere/embed-v4.0"],
        "g": ["openai/gpt-4o"],
        "r": ["jina/jina-reranker-m0"],
        "n": ["e"],
    }
    assert set(made.lost) >= {"router_settings.fallbacks.0.e", "router_settings.fallbacks.1.r"}
    assert set(made.lost) >= {"model_list.0", "model_list.2", "model_list.4"}


def test_one_embedding_model_at_two_vendors_is_one_space_and_says_so(tmp_path: Path) -> None:
    rest = "router_settings: {fallbacks: [{h: [e]}], model_group_alias: {n: e}}\n"
    made = table(tmp_path, VECTORS + entry("h", "openai/text-embedding-3-small"), rest)
    routes = made.table.loaded.config.routes
    assert {name for name, route in routes.items() if route.same_space} == {"e", "h", "n"}
    assert set(made.lost) == {"model_list.0", "model_list.5"}
    assert all("same_space" in reason for reason in made.lost.values())


def test_a_group_of_embedding_models_keeps_the_space_of_its_first(tmp_path: Path) -> None:
    made = table(tmp_path, entry("e", "voyage/voyage-3.5") + entry("e", "openai/text-embedding-3-large"))
    assert made.reached("e") == ["voyage/voyage-3.5/default"]
    assert set(made.lost) == {"model_list.1"}
    assert "openai/text-embedding-3-large" in made.table.snapshot.models


def test_what_is_told_of_a_group_without_a_route_stands_at_its_model(tmp_path: Path) -> None:
    rest = "router_settings: {default_fallbacks: [g]}\n"
    made = table(tmp_path, entry("cohere/embed-v4.0", "cohere/embed-v4.0") + entry("g", "openai/gpt-4o"), rest)
    assert "cohere/embed-v4.0" not in made.table.loaded.config.routes
    assert "# model_list.0: a default fallback" in made.text


def test_a_list_of_fallbacks_of_which_none_is_taken_is_not_written(tmp_path: Path) -> None:
    made = table(tmp_path, VECTORS, "router_settings: {context_window_fallbacks: [{f: [g]}]}\n")
    assert "fallbacks:" not in made.text.replace("context_window_fallbacks", "")
    assert set(made.lost) >= {"router_settings.context_window_fallbacks.0.f"}


CHAIN = "".join(entry(name, f"openai/{name}") for name in "abcdefgh")


@looped(
    ("fallbacks", "order"),
    [
        ("{a: [b]}, {b: [c]}, {c: [d]}", "abcd"),
        ("{a: [b, c]}, {b: [d]}", "abdc"),
        ("{a: [b]}, {b: [a, c]}, {c: [b]}", "abc"),
        ("{a: [b, d]}, {b: [c, d]}, {c: [e]}", "abced"),
        ("{a: [b]}, {b: [c]}, {c: [d]}, {d: [e]}, {e: [f]}, {f: [g]}, {g: [h]}", "abcdef"),
    ],
)
def test_fallbacks_of_fallbacks_follow_in_the_order_of_litellm(fallbacks: str, order: str, tmp_path: Path) -> None:
    made = table(tmp_path, CHAIN, f"router_settings: {{fallbacks: [{fallbacks}]}}\n")
    assert made.reached("a") == [f"openai/{name}/default" for name in order]
    reasons = fallbacks.replace("fallbacks", "context_window_fallbacks")
    made = table(tmp_path, CHAIN, f"router_settings: {{context_window_fallbacks: [{reasons}]}}\n")
    found = made.table.loaded.config.routes["a"].fallbacks.context_window
    assert found == [f"openai/{name}" for name in order[1:]]


def test_max_fallbacks_ends_a_chain(tmp_path: Path) -> None:
    rest = "router_settings: {max_fallbacks: 1, fallbacks: [{a: [b]}, {b: [c]}]}\n"
    assert table(tmp_path, CHAIN, rest).reached("a") == ["openai/a/default", "openai/b/default"]


def test_an_alias_goes_where_its_name_goes_for_single_reasons_too(tmp_path: Path) -> None:
    rest = "router_settings: {model_group_alias: {s: b}, context_window_fallbacks: [{b: [c]}]}\n"
    snapshot = table(tmp_path, TWO, rest).table.snapshot
    plans = [plan_for(snapshot, ANYONE, name, "openai", IDLE) for name in ("b", "s")]
    assert [[target.name for each in it.fallbacks.values() for target in each] for it in plans] == [
        ["mistral/w/default"],
        ["mistral/w/default"],
    ]


def test_helpers_and_hidden_names_are_not_listed(tmp_path: Path) -> None:
    rest = "router_settings: {fallbacks: [{a: [b]}], model_group_alias: {h: {model: b, hidden: true}, s: {model: b}}}\n"
    routes = table(tmp_path, TWO, rest).table.loaded.config.routes
    assert {name: route.listed for name, route in routes.items() if not route.listed} == {"a.group": False, "h": False}
