"""Private AI Services' surface: its own rules, and complete streams like OpenAI's."""

import pytest

from providers.completion import Chunk
from providers.json_types import JsonValue
from proxy.errors import ErrorFacts
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.vmware_pais import PAIS
from tests.proxy.surfaces.kit import FACTS, USAGE, complete, converse, play, refuse
from tests.support.looped import looped


@pytest.mark.parametrize("asked", [False, True])
def test_streams_are_openais(asked: bool) -> None:
    options: dict[str, JsonValue] = {"stream_options": {"include_usage": True}} if asked else {}
    events = (Chunk(text=" Par"), Chunk(text="is", finish_reason="stop"), USAGE)
    for kind in (complete, converse):
        streams = [play(row.renderer(kind(row, stream=True, **options), FACTS), *events) for row in (PAIS, OPENAI)]
        assert streams[0] == streams[1]


def test_a_broken_stream_is_openais() -> None:
    facts = ErrorFacts(502, "server_error", "upstream_error", "x")
    errors = [row.renderer(complete(row, stream=True), FACTS).error(facts) for row in (PAIS, OPENAI)]
    assert errors[0] == errors[1]


def test_the_temperature_is_zero_unless_the_client_says_otherwise() -> None:
    request = complete(PAIS)
    assert request.params == {"temperature": 0, "context_length_exceeded_behavior": "error"}
    assert request.injected == {"temperature", "context_length_exceeded_behavior"}
    assert complete(PAIS, temperature=0.5).params["temperature"] == 0.5
    assert "temperature" not in complete(PAIS, temperature=0).injected
    assert "temperature" not in converse(PAIS).params


@looped(("name", "value"), [("max_tokens", 0), ("top_k", 0), ("top_k", -1), ("stop", []), ("n", 0)])
def test_its_lower_bounds_are_its_own(name: str, value: JsonValue) -> None:
    facts = refuse(PAIS, echo=True, **{name: value})
    assert facts.param == name
    assert PAIS.error(facts)[0] == 422


def test_a_plain_stop_string_is_accepted_beyond_its_documentation() -> None:
    assert complete(PAIS, stop="x").params["stop"] == ("x",)


def test_an_unknown_model_has_a_detail_string() -> None:
    facts = ErrorFacts(404, "invalid_request_error", "model_not_found", "The model 'x' does not exist.", "model")
    assert PAIS.error(facts) == (
        404,
        b'{"detail":"The model \'x\' does not exist.","error":{"message":"The model \'x\' does not exist.",'
        b'"type":"invalid_request_error","param":"model","code":"model_not_found"}}',
    )


def test_paths_are_below_the_compatibility_base() -> None:
    base = "/api/v1/compatibility/openai/v1"
    assert [(endpoint.method, endpoint.path) for endpoint in PAIS.endpoints] == [
        ("POST", f"{base}/completions"),
        ("POST", f"{base}/chat/completions"),
        ("GET", f"{base}/models"),
    ]
    assert PAIS.key_headers[0] == "authorization"
