"""Check TGI's own endpoints against the project's client types (`text-generation` 0.7.0).

The types accept unknown fields and lack one form of a grammar that the server has. Both are checked here, with the
limits of `docs/openapi.json`.
"""

from typing import Any  # the SDK is not installed for the type check

import orjson
from text_generation.types import (  # type: ignore[import-not-found]
    Parameters,
    Request,
    Response,
    StreamResponse,
)

_BEYOND_THE_TYPES = {"adapter_id"}


def check_body(operation: str, body: bytes) -> None:
    """Raise AssertionError or pydantic's ValidationError for anything that the server would refuse or ignore."""
    sent: dict[str, Any] = orjson.loads(body)
    assert operation == "completions", operation
    assert sent.keys() == {"inputs", "parameters"}, sent.keys()
    parameters = dict(sent["parameters"])
    assert parameters.keys() <= set(Parameters.model_fields) | _BEYOND_THE_TYPES, parameters.keys()
    # The client refuses a value that the server accepts: a penalty below 0.
    assert -2 <= parameters.pop("frequency_penalty", 0) <= 2
    assert len(parameters.get("stop", [])) <= 4
    assert parameters.get("top_n_tokens", 1) <= 5
    assert parameters.get("max_new_tokens", 1) >= 1
    grammar = parameters.get("grammar")
    if grammar is not None:
        assert grammar.keys() == {"type", "value"}
        assert grammar["type"] != "json" or "properties" in grammar["value"]
    Request.model_validate({"inputs": sent["inputs"], "parameters": parameters})


def check_answer(body: bytes) -> None:
    """Raise unless the project's client would read the response."""
    answer = orjson.loads(body)
    for result in answer if isinstance(answer, list) else [answer]:
        Response.model_validate(result)


def check_events(events: list[bytes]) -> None:
    for payload in events:
        event = orjson.loads(payload)
        if "error" in event:
            assert event.keys() == {"error", "error_type"}
        else:
            StreamResponse.model_validate(event)
