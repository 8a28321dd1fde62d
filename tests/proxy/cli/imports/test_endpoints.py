"""Deployments are split into vendors and models: shared settings are written once, different ones separately."""

import pytest

from config.problem import ConfigError
from providers.unified_request import Task
from proxy.cli.imports import endpoints as module
from proxy.cli.imports.endpoints import (
    ANY_MODEL,
    SAME_SPACE,
    DraftEndpoint,
    Endpoints,
    Share,
    in_weight,
    put_route,
    space_of,
    task_of,
)
from proxy.cli.imports.table_draft import Block, DraftValue, Reference, TableDraft
from proxy.cli.imports.write_yaml import table_text
from tests.proxy.cli.imports.kit import section
from tests.support.looped import looped


def written(*every: DraftEndpoint) -> tuple[Endpoints, str]:
    made = Endpoints(TableDraft())
    for each in every:
        made.add(each, "group", section("a: 1"))
    made.write()
    return made, table_text(made.draft).removeprefix("version: 1\n")


def endpoint(model: str, name: str = "default", vendor: str = "openai", **settings: DraftValue) -> DraftEndpoint:
    return DraftEndpoint(vendor, "openai", model, name, dict(settings))


def test_what_a_vendors_deployments_agree_on_stands_at_the_vendor() -> None:
    _, text = written(endpoint("a", api_key="k", price=1), endpoint("b", api_key="k"))
    assert text == "vendors:\n  openai: {api_key: k}\nmodels:\n  openai/a: {price: 1}\n  openai/b: {}\n"


def test_what_a_models_deployments_agree_on_stands_at_the_model() -> None:
    _, text = written(endpoint("a", "eu", api_key="1", price=1), endpoint("a", "us", api_key="2", price=1))
    assert text == (
        "vendors:\n  openai: {}\nmodels:\n  openai/a:\n    price: 1\n"
        '    deployments:\n      eu: {api_key: "1"}\n      us: {api_key: "2"}\n'
    )


def test_what_some_do_not_have_is_not_given_to_them() -> None:
    _, text = written(endpoint("a", headers="h"), endpoint("b"))
    assert "  openai: {}\n" in text
    assert "openai/a: {headers: h}" in text


def test_deployments_that_differ_in_nothing_are_one() -> None:
    one, two = endpoint("a", api_key="k"), endpoint("a", api_key="k")
    one.comments, two.comments = ["x"], ["x", "y"]
    made, text = written(one, two)
    assert text.count("openai/a:") == 1
    assert made.targets("group", [Share(one, 2), Share(two, 3)], lambda _: False) == [("openai/a", 5)]
    assert one.comments == ["x", "y"]


def test_one_name_for_two_kinds_of_vendors_is_two_names() -> None:
    made = Endpoints(TableDraft())
    assert [made.vendor("x", "openai"), made.vendor("x", "groq"), made.vendor("x", "openai")] == ["x", "x-groq", "x"]


def test_a_model_that_a_route_hides_is_reached_by_its_deployment() -> None:
    one = endpoint("a")
    made, _ = written(one)
    assert made.targets("group", [Share(one)], lambda name: name == "openai/a") == [("openai/a/default", 1.0)]


def test_a_group_that_is_a_whole_model_gives_it_its_policy() -> None:
    eu, us = endpoint("a", "eu", api_key="1"), endpoint("a", "us", api_key="2")
    made, _ = written(eu, us)
    shares = [Share(eu, 3), Share(us, 1)]
    assert made.whole_model("group", shares) == "openai/a"
    assert made.whole_model("group", shares[:1]) is None
    assert made.whole_model("other", shares) is None
    made.balance(shares, "weighted")
    assert '    policy: weighted\n    deployments:\n      eu: {api_key: "1", weight: 3}\n' in table_text(made.draft)
    assert made.pinned(eu) == "openai/a/eu"
    assert made.key(eu) == "openai/a"


def test_names_that_a_table_does_not_take_are_kept_for_the_vendor() -> None:
    _, text = written(endpoint("my model"), endpoint(ANY_MODEL))
    assert 'openai/my-model: {upstream_model: "my model"}' in text
    assert '"openai/*": {}' in text
    _, text = written(endpoint("a\nb"), endpoint(ANY_MODEL, vendor="v", upstream_model="x"))
    assert "upstream" not in text


def test_what_an_address_needs_is_asked_for() -> None:
    made = Endpoints(TableDraft())
    made.add(DraftEndpoint("x", "databricks", "m"), "g", section("a: 1"))
    made.add(DraftEndpoint("y", "openai_compatible", "m"), "g", section("a: 1"))
    made.add(DraftEndpoint("z", "vllm", "m"), "g", section("a: 1"))
    made.write()
    vendors = made.draft.section("vendors")
    assert vendors.block("x").entries["url_params"] == Block({"host": Reference("${X_HOST}")})
    assert vendors.block("y").entries["base_url"] == Reference("${Y_BASE_URL}")
    assert vendors.block("z").entries["allow_private"] is True


def test_there_is_a_most_of_deployments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ENDPOINTS", 2)
    with pytest.raises(ConfigError, match="more than 2 deployments"):
        written(endpoint("a"), endpoint("b"), endpoint("c"))


def test_routes_are_as_short_as_they_can_be() -> None:
    routes = Block()
    put_route(routes, "one", [("a/b", 1)], "weighted")
    put_route(routes, "even", [("a/b", 1), ("c/d", 1)], "weighted")
    put_route(routes, "told", [("a/b", 1)], "priority", ["Why."])
    assert routes.entries == {
        "one": "a/b",
        "even": Block({"policy": "weighted", "targets": ["a/b", "c/d"]}),
        "told": Block({"targets": ["a/b"]}, ["Why."]),
    }
    assert list(in_weight([("a", 1), ("b", 3)], "weighted"))[1] == Block({"target": "b", "weight": 3})
    assert list(in_weight([("a", 1), ("b", 3)], "priority")) == ["a", "b"]


@looped(
    ("model", "profile", "task"),
    [
        ("text-embedding-3-small", "openai", Task.EMBEDDINGS),
        ("BAAI/bge-m3", "vllm", Task.EMBEDDINGS),
        ("BAAI/bge-reranker-v2-m3", "vllm", Task.RERANK),
        ("voyage-3.5", "voyage", Task.EMBEDDINGS),
        ("omni-moderation-latest", "openai", Task.MODERATIONS),
        ("whisper-1", "openai", Task.TRANSCRIPTIONS),
        ("gpt-4o-mini-tts", "openai", Task.SPEECH),
        ("dall-e-3", "openai", Task.IMAGES),
        ("gpt-4o", "openai", None),
        ("gpt-3.5-turbo-instruct", "openai", None),
    ],
)
def test_what_a_model_does_is_known_by_its_name_or_its_vendor(model: str, profile: str, task: Task | None) -> None:
    assert task_of(model, profile) is task


def test_a_route_over_one_embedding_model_at_two_vendors_says_that_it_has_one_space() -> None:
    one, two, other = endpoint("a"), endpoint("a", vendor="mine"), endpoint("b")
    for each in (one, two, other):
        each.task, each.space = Task.EMBEDDINGS, space_of(f"org/{each.model.upper()}")
    made, _ = written(one, two, other)
    assert made.space_settings([one, two]) == {SAME_SPACE: True}
    assert made.space_settings([one]) == made.space_settings([one, other]) == made.space_settings([]) == {}
