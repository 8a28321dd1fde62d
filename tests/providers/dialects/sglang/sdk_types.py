"""Check SGLang's own endpoint against the engine's published types (`sglang` 0.5.23).

Only `sglang/api/v1/api_types.py` of the package is needed, which needs only `msgspec`. It is loaded by itself, because
the package would load a deep-learning framework. The server, and so its types, ignore unknown fields beside the
sampling settings; these fields are checked here.
"""

from typing import Any  # the engine is not installed for the type check

import orjson

from tests.contracts.load_single_module import load_single_module

_TYPES = load_single_module("sglang", "sglang/api/v1/api_types.py")
_CONSTRAINTS = ("json_schema", "regex", "ebnf", "structural_tag")


def check_body(operation: str, body: bytes) -> None:
    """Raise AssertionError or the types' own error for anything that the server would refuse or ignore."""
    sent: dict[str, Any] = orjson.loads(body)
    assert operation == "completions", operation
    assert sent.keys() <= set(_TYPES.GenerateRequest.__struct_fields__), sent.keys()
    _TYPES.GenerateRequest.from_json_value(sent)
    assert ("text" in sent) != ("input_ids" in sent)
    sampling = sent["sampling_params"]
    # The default would be 128.
    assert "max_new_tokens" in sampling
    assert "choice" not in sampling, "the engine has no such setting, whatever its contract says"
    assert sum(name in sampling for name in _CONSTRAINTS) <= 1
    assert 0 < sampling.get("top_p", 1) <= 1
    assert sampling.get("top_k", 1) == -1 or sampling.get("top_k", 1) >= 1
    assert 0 < sampling.get("repetition_penalty", 1) <= 2
    assert len(sampling.get("stop", [])) <= 32


def check_answer(body: bytes) -> None:
    """Raise unless the response is valid by the engine's types."""
    answer = orjson.loads(body)
    for result in answer if isinstance(answer, list) else [answer]:
        _TYPES.GenerateResponse.from_json_value(result)


def check_events(events: list[bytes]) -> None:
    for payload in events:
        if payload == b"[DONE]":
            continue
        event = orjson.loads(payload)
        kind = _TYPES.GenerateStreamError if "error" in event else _TYPES.GenerateResponse
        kind.from_json_value(event)
