"""Targets that honour all fields of a request come before targets that would drop some. Otherwise the plan's order
holds.
"""

from dataclasses import replace
from typing import cast

import pytest

from providers.dialect import UpstreamRequest
from providers.dialects.openai.dialect import OpenAIDialect
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import SHORTEST_PROMPTS, Guided, Operation, Params, UnifiedRequest
from proxy.dispatch.prefer_honouring import UNKNOWN, honouring_first
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import ANYONE, Team
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

TABLE = snapshot(
    "vendors:\n"
    "  anthropic: {api_key: k, on_unsupported: drop, max_output_tokens: 1024}\n"
    "  openai: {api_key: k}\n"
    "  cohere: {api_key: k, on_unsupported: drop}\n"
    "models: {anthropic/c: , openai/gpt-4o: , openai/gpt-3.5-turbo-instruct: , cohere/command-r: }\n"
)
CLAUDE, OPENAI, INSTRUCT, COHERE = (model.targets[0] for model in TABLE.models.values())


def request_with(injected: tuple[str, ...] = (), unknown: JsonObject | None = None, **params: object) -> UnifiedRequest:
    prompt = SHORTEST_PROMPTS[Operation.CHAT]
    return UnifiedRequest(
        Operation.CHAT, "fast", prompt, cast(Params, params), injected=frozenset(injected), unknown=unknown
    )


def planned(*targets: Target) -> Plan:
    return Plan("fast", "fast", targets, True, ())


def order(request: UnifiedRequest, *targets: Target, team: Team = ANYONE) -> list[Target]:
    return [*honouring_first(planned(*targets), request, team).targets]


def test_one_that_would_drop_a_field_comes_after_those_that_honour_it_in_their_order() -> None:
    found = honouring_first(planned(CLAUDE, OPENAI), request_with(seed=1), ANYONE)
    assert found.targets == (OPENAI, CLAUDE)
    assert found.dropping == {CLAUDE: ("seed",)}
    other = replace(OPENAI, deployment="other")
    assert order(request_with(presence_penalty=1, logit_bias={"1": 2}), CLAUDE, other, COHERE, OPENAI) == [
        other,
        OPENAI,
        CLAUDE,
        COHERE,
    ]


def test_where_all_would_drop_something_or_one_refuses_the_order_stays() -> None:
    found = honouring_first(planned(CLAUDE, COHERE), request_with(mirostat_lr=0.5), ANYONE)
    assert found.targets == (CLAUDE, COHERE)
    strict = replace(CLAUDE, on_unsupported="error")
    assert order(request_with(seed=1), strict, OPENAI) == [strict, OPENAI]


@pytest.mark.parametrize(
    ("team", "first"),
    [(replace(ANYONE, on_unsupported="error"), CLAUDE), (replace(ANYONE, on_unsupported="drop"), OPENAI)],
)
def test_the_word_of_a_team_counts_more_than_the_tables(team: Team, first: Target) -> None:
    claude = CLAUDE if first is CLAUDE else replace(CLAUDE, on_unsupported="error")
    assert (order(request_with(seed=1), claude, OPENAI, team=team)[0] is claude) == (first is CLAUDE)


@looped(
    "request_",
    [
        request_with(),
        request_with(temperature=0.5),
        request_with(presence_penalty=0),
        request_with(user="u", metadata={"a": "b"}, store=False, service_tier="auto"),
        request_with(("seed",), seed=1),
        request_with(guided=Guided("regex", "a+"), n=2),
    ],
    ids=["nothing", "honoured", "neutral", "advisory", "the surface's own", "binding"],
)
def test_other_fields_change_nothing(request_: UnifiedRequest) -> None:
    before = planned(CLAUDE, OPENAI)
    assert honouring_first(before, request_, ANYONE) is before


def test_fields_of_no_table_count_as_one() -> None:
    refusing = next(
        each for each in (CLAUDE, COHERE) if each.dialect.capabilities(request_with(), each)["unknown"].refused
    )
    found = honouring_first(planned(refusing, OPENAI), request_with(unknown={"a\x1b": 1, "b": 2}), ANYONE)
    assert found.dropping[refusing] == (UNKNOWN,)


def test_a_target_that_refuses_the_request_itself_keeps_its_place() -> None:
    dropping = replace(INSTRUCT, on_unsupported="drop")
    assert order(request_with(seed=1), dropping, OPENAI) == [dropping, OPENAI]


def test_targets_for_a_kind_of_failure_are_ordered_too() -> None:
    kind = FailureKind.CONTEXT_LENGTH
    before = replace(planned(OPENAI), fallbacks={kind: (CLAUDE, OPENAI)})
    assert honouring_first(before, request_with(seed=1), ANYONE).fallbacks[kind] == (OPENAI, CLAUDE)


def test_nothing_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: OpenAIDialect, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        raise AssertionError("encoded")

    monkeypatch.setattr(OpenAIDialect, "encode", never)
    assert order(request_with(seed=1), CLAUDE, OPENAI) == [OPENAI, CLAUDE]


def test_one_target_alone_is_not_looked_at() -> None:
    before = planned(CLAUDE)
    assert honouring_first(before, request_with(seed=1), ANYONE) is before
