"""An advisory field never causes an error: it is sent if the vendor accepts it, and otherwise reported as left out."""

from collections.abc import Iterator
from typing import cast

import orjson

from providers.adaptation.drop_unsupported import MAX_NAMED
from providers.dialects.capability_matrix import matrix_entries
from providers.emulation.plan_calls import plan_calls
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.request_fields import ADVISORY_FIELDS, ADVISORY_VALUES, is_neutral
from providers.unified_request import SHORTEST_PROMPTS, ChatPrompt, Operation, Params, UnifiedRequest
from tests.conformance.advisory_requests import ODD, VALUES, run_advisory
from tests.conformance.read_answer import dropped_fields
from tests.providers.dialects.kit import target_of
from tests.support.cpu_growth import excess
from tests.support.looped import looped

each_profile = looped("profile", [name for name, each in load_profiles().items() if each.wires])

MEANS_NOTHING = frozenset({"service_tier", "store"})
"""Fields whose advisory value may equal the vendor's default, so that nothing is sent and nothing is reported as left
out."""


def test_every_advisory_field_has_a_usual_value_and_odd_ones() -> None:
    assert VALUES.keys() == ODD.keys() == ADVISORY_FIELDS | ADVISORY_VALUES.keys()
    assert all(set(values) <= set(cast("tuple[str, ...]", ODD[name])) for name, values in ADVISORY_VALUES.items())


@each_profile
def test_a_request_with_everything_advisory_is_answered_on_every_surface(profile: str) -> None:
    runs = run_advisory(profile)
    assert runs
    for run in runs:
        assert run.exchange.answer.status == 200, (run.row.model, run.path, run.exchange.answer.body)


@each_profile
def test_what_is_not_sent_is_named(profile: str) -> None:
    for run in run_advisory(profile):
        named = dropped_fields(run.exchange.answer)
        wire = b"".join(orjson.dumps(sent.body) for sent in run.exchange.sent)
        for name, value in VALUES.items():
            sent = orjson.dumps(_leaf(value)) in wire
            assert sent or name in named or name in MEANS_NOTHING, (run.row.model, run.path, name, named)


def _leaf(value: JsonValue) -> JsonValue:
    """Return the last value in an object; the vendors' forms of the object hold it too."""
    return _leaf(list(value.values())[-1]) if isinstance(value, dict) else value


def odd_requests(operation: Operation, model: str) -> Iterator[UnifiedRequest]:
    for name, values in ODD.items():
        for value in values:
            yield UnifiedRequest(operation, model, SHORTEST_PROMPTS[operation], cast(Params, {name: value}))
    for position in range(max(map(len, ODD.values()))):
        together = {name: values[position % len(values)] for name, values in ODD.items()}
        yield UnifiedRequest(operation, model, SHORTEST_PROMPTS[operation], cast(Params, together))


@each_profile
def test_no_value_of_an_advisory_field_is_refused(profile: str) -> None:
    for row in matrix_entries([load_profiles()[profile]]):
        if row.closed:
            continue
        target = target_of(profile, row.model, max_output_tokens=8192)
        for asked in odd_requests(row.operation, row.model):
            plan = plan_calls(asked, target)
            assert len(plan.calls) == 1
            assert set(plan.dropped) <= asked.params.keys()
            if len(asked.params) == 1 and row.cells[next(iter(asked.params))].left_out:
                neutral = any(is_neutral(name, value) for name, value in asked.params.items())
                assert set(plan.dropped) == (set() if neutral else asked.params.keys())


@each_profile
def test_no_value_of_an_advisory_field_costs_much(profile: str) -> None:
    row = next(row for row in matrix_entries([load_profiles()[profile]]) if not row.closed)
    target, asked = target_of(profile, row.model, max_output_tokens=8192), [*odd_requests(row.operation, row.model)]
    assert excess(lambda: [plan_calls(each, target) for each in asked], 20) == ""


@each_profile
def test_the_names_are_bounded(profile: str) -> None:
    for run in run_advisory(profile):
        names = dropped_fields(run.exchange.answer)
        assert len(names) == len(set(names)) <= MAX_NAMED


TYPED = frozenset({each.dialect for each in load_profiles().values()} - {"bedrock", "gemini", "cohere", "ollama"})
"""Dialects that read a conversation part by part."""

MARK: JsonValue = {"type": "ephemeral"}
TURNS: tuple[JsonObject, ...] = (
    {"role": "user", "name": "Ann Lee", "content": [{"type": "text", "text": "hi", "cache_control": MARK}]},
    {"role": "assistant", "name": "bot", "content": "yes", "reasoning_content": "hm", "cache_control": MARK},
)
"""Messages with advisory fields."""


@looped("profile", [name for name, each in load_profiles().items() if each.dialect in TYPED])
def test_members_of_messages_that_promise_nothing_are_never_refused(profile: str) -> None:
    for row in matrix_entries([load_profiles()[profile]]):
        if row.closed or row.operation is not Operation.CHAT:
            continue
        prompt = ChatPrompt((*TURNS * 500, {"role": "user", "content": "so?"}))
        plan = plan_calls(UnifiedRequest(Operation.CHAT, row.model, prompt, {}), target_of(profile, row.model))
        assert len(plan.dropped) <= 4, plan.dropped
