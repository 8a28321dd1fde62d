"""The outgoing request of Replicate's predictions, and the incoming response."""

from dataclasses import replace

import orjson
import pytest

from providers.capabilities import SCANNED
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.unified_request import Guided, LogprobsWanted, Operation
from tests.providers.dialects.kit import (
    as_given,
    body_for,
    chat_request,
    fixture,
    refusal_for,
    refused,
    sent_for,
    target_of,
    text_request,
)
from tests.providers.neutral import EACH_NEUTRAL
from tests.support.looped import looped

TARGET = target_of("replicate", "meta/llama")
ORIGIN = "https://api.replicate.com"


@looped(
    ("model", "path", "members"),
    [
        ("meta/llama", "/v1/models/meta/llama/predictions", {}),
        ("deployments/acme/own", "/v1/deployments/acme/own/predictions", {}),
        ("acme/own:5c7d5dc6", "/v1/predictions", {"version": "5c7d5dc6"}),
        ("a/b?c", "/v1/models/a/b%3Fc/predictions", {}),
    ],
)
def test_a_prediction_is_made_where_the_model_is(model: str, path: str, members: JsonObject) -> None:
    sent = sent_for(text_request("The sky"), target_of("replicate", model))
    assert (sent.method, sent.url, sent.operation) == ("POST", f"{ORIGIN}{path}", Operation.COMPLETIONS)
    assert orjson.loads(sent.body) == {**members, "input": {"prompt": "The sky"}}


@looped("model", ["llama", "a/b/versions", "deployments/a/b/c", "deployments/a", "a/", "/b", "a//b"])
def test_a_name_of_another_form_would_be_another_path(model: str) -> None:
    target = replace(target_of("replicate", "meta/llama"), upstream_model=model)
    refusal = refusal_for(text_request(), target)
    assert (refusal.param, refusal.code) == ("model", "invalid_value")


@pytest.mark.parametrize("stream", [False, True])
def test_it_is_waited_for_whatever_a_client_says(stream: bool) -> None:
    request = replace(text_request(), stream=stream, extra_headers={"Prefer": "respond-async", "x-trace": "a"})
    sent = sent_for(request, TARGET)
    assert sent.headers == {"x-trace": "a", "prefer": "wait=60"}
    assert sent.stream is stream
    assert orjson.loads(sent.body) == {"input": {"prompt": "Say hi"}}


@looped(
    ("params", "written"),
    [*as_given(max_tokens=5, temperature=0.5, top_p=0.9, top_k=40, presence_penalty=0.5, frequency_penalty=1)],
)
def test_a_field_is_an_input(params: dict[str, object], written: JsonObject) -> None:
    assert body_for(text_request(**params), TARGET) == {"input": {"prompt": "Say hi", **written}}


def test_values_that_ask_for_nothing_ask_for_nothing() -> None:
    for asked in EACH_NEUTRAL:
        body = body_for(text_request(**asked), TARGET)
        assert body in ({"input": {"prompt": "Say hi"}}, {"input": {"prompt": "Say hi", **asked}}), asked


@looped(
    ("params", "param"),
    [
        *refused(n=2, best_of=2, max_tokens=0, seed=7, stop=("a",), logprobs=LogprobsWanted(0, "legacy")),
        *refused(guided=Guided("regex", "a"), response_format={"type": "json_object"}),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(params: dict[str, object], param: str) -> None:
    refusal = refusal_for(text_request(**params), TARGET)
    assert refusal.param == param
    assert TARGET.name in refusal.message


def test_stops_are_the_gateways_to_find() -> None:
    table = TARGET.dialect.capabilities(text_request(), TARGET)
    assert (table["stop"], table.most_stops) == (SCANNED, 0)
    assert refusal_for(chat_request(), TARGET).param == "messages"


def test_a_models_own_inputs_go_beside_but_never_the_prompt() -> None:
    extra: JsonObject = {"input": {"seed": 7, "prompt_template": "{prompt}"}}
    body = body_for(replace(text_request("a", max_tokens=5), extra_params=extra), TARGET)
    assert body == {"input": {"prompt": "a", "max_tokens": 5, "seed": 7, "prompt_template": "{prompt}"}}
    assert refusal_for(replace(text_request(), unknown={"seed_2": 1}), TARGET).param == "seed_2"
    reserved: list[JsonObject] = [{"input": {"prompt": "x"}}, {"version": "x"}, {"webhook": "https://h"}]
    for forbidden in reserved:
        refusal = refusal_for(replace(text_request(), extra_params=forbidden), TARGET)
        assert refusal.param == "inference_extra_params"


@looped(
    ("name", "status", "kind"),
    [
        ("error_401.json", 401, FailureKind.AUTH),
        ("error_402.json", 402, FailureKind.QUOTA),
        ("error_404.json", 404, FailureKind.NOT_FOUND),
        ("error_422.json", 422, FailureKind.INVALID_REQUEST),
        ("error_429.json", 429, FailureKind.RATE_LIMITED),
        ("error_500.json", 500, FailureKind.SERVER),
        ("error_502.html", 502, FailureKind.SERVER),
    ],
)
def test_errors_mean_what_the_vendor_says(name: str, status: int, kind: FailureKind) -> None:
    body = fixture("replicate", "errors", name)
    failure = TARGET.dialect.classify(sent_for(text_request(), TARGET), status, {"retry-after": "3"}, body)
    assert (failure.kind, failure.status, failure.retry_after) == (kind, status, 3.0)
    assert "10.0.0.7" not in failure.message
