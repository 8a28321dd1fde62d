"""The attributes of a surface, on every row."""

import orjson

from providers.pricing import Price
from providers.unified_request import Operation
from proxy import errors
from proxy.errors import ErrorFacts, FieldProblem
from proxy.surfaces.completion_surface import CompletionSurface, generation_endpoints
from proxy.surfaces.surface import Endpoint, ModelCard, Surface
from tests.proxy.surfaces.kit import FACTS, ROWS, complete, converse, every_row
from tests.support.looped import looped

CARDS = (
    ModelCard("openai/gpt-x", 1795000000, "openai", 128000, 16384, Price(0.15, 0.6, 0.075)),
    ModelCard("fast", 1795000000, "dragoman"),
)


@every_row
def test_a_row_is_a_surface(row: CompletionSurface) -> None:
    surface: Surface = row
    assert surface.endpoints
    assert surface.prefixes
    assert set(surface.key_headers) == {"authorization", "x-api-key", "api-key"}


@every_row
def test_the_renderer_fits_the_operation(row: CompletionSurface) -> None:
    assert type(row.renderer(complete(row), FACTS)).__name__ == "TextRenderer"
    assert type(row.renderer(converse(row), FACTS)).__name__ == "ChatRenderer"


@looped(("name", "status"), [("openai", 400), ("fireworks", 400), ("scale_v4", 422), ("scale_v5", 422), ("pais", 422)])
def test_a_bad_body_has_the_surfaces_own_status(name: str, status: int) -> None:
    for code in ("invalid_value", "conflicting_parameters", "unsupported_parameter"):
        facts = errors.invalid_request((FieldProblem(("n",), "bad", code),)).facts
        assert ROWS[name].error(facts)[0] == status


@every_row
def test_a_context_overflow_is_400_everywhere(row: CompletionSurface) -> None:
    overflow = FieldProblem(("prompt",), "too long", "context_length_exceeded")
    status, body = row.error(errors.invalid_request((overflow,)).facts)
    assert status == 400
    assert orjson.loads(body)["error"]["code"] == "context_length_exceeded"


@every_row
def test_other_errors_keep_their_status_and_say_why(row: CompletionSurface) -> None:
    status, body = row.error(
        ErrorFacts(404, "invalid_request_error", "model_not_found", "Kein Modell für dich.", "model")
    )
    assert status == 404
    assert body.isascii()
    assert orjson.loads(body)["error"]["message"] == "Kein Modell für dich."


@every_row
def test_the_models_list_is_openais_with_what_clients_of_vllm_and_openrouter_read(row: CompletionSurface) -> None:
    first = {
        "id": "openai/gpt-x",
        "object": "model",
        "created": 1795000000,
        "owned_by": "openai",
        "root": "openai/gpt-x",
        "max_model_len": 128000,
        "context_length": 128000,
        "top_provider": {"context_length": 128000, "max_completion_tokens": 16384},
        "pricing": {"prompt": "0.00000015", "completion": "0.0000006", "input_cache_read": "0.000000075"},
    }
    second = {"id": "fast", "object": "model", "created": 1795000000, "owned_by": "dragoman", "root": "fast"}
    assert orjson.loads(row.models(CARDS)) == {"object": "list", "data": [first, second]}
    assert orjson.loads(row.model(CARDS[0])) == first
    assert orjson.loads(row.models(())) == {"object": "list", "data": []}


def test_endpoints_are_both_operations_below_each_base() -> None:
    assert generation_endpoints("/a", "") == (
        Endpoint("POST", "/a/completions", Operation.COMPLETIONS),
        Endpoint("POST", "/a/chat/completions", Operation.CHAT),
        Endpoint("POST", "/completions", Operation.COMPLETIONS),
        Endpoint("POST", "/chat/completions", Operation.CHAT),
    )
