"""Check llama.cpp's own endpoints against a schema of the documented fields.

The server publishes no types of its own; the fields and their ranges are from `tools/server/README.md`.
`tests/e2e/test_engine_native.py` tests the real engine.
"""

from typing import Any  # JSON Schema

import jsonschema
import orjson

_NUMBER: dict[str, Any] = {"type": "number"}
_WHOLE: dict[str, Any] = {"type": "integer"}
_FLAG: dict[str, Any] = {"type": "boolean"}
_TEXT: dict[str, Any] = {"type": "string"}
_IDS: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_PROMPT: dict[str, Any] = {
    "anyOf": [
        _TEXT,
        _IDS,
        {"type": "array", "items": _TEXT, "minItems": 1},
        {"type": "array", "items": _IDS, "minItems": 1},
    ]
}
_COMMON: dict[str, Any] = {
    "model": _TEXT,
    "stream": _FLAG,
    "n_predict": {"type": "integer", "minimum": 1},
    "temperature": {"type": "number", "minimum": 0},
    "top_p": {"type": "number", "minimum": 0, "maximum": 1},
    "top_k": {"type": "integer", "minimum": 0},
    "min_p": {"type": "number", "minimum": 0, "maximum": 1},
    "typical_p": _NUMBER,
    "seed": {"type": "integer", "minimum": 0, "maximum": 2**32 - 2},
    "frequency_penalty": _NUMBER,
    "presence_penalty": _NUMBER,
    "repeat_penalty": _NUMBER,
    "mirostat": {"enum": [0, 1, 2]},
    "mirostat_tau": _NUMBER,
    "mirostat_eta": _NUMBER,
    "ignore_eos": _FLAG,
    "stop": {"type": "array", "items": {"type": "string", "minLength": 1}},
    "n_probs": {"type": "integer", "minimum": 1},
    "logit_bias": {"type": "object", "additionalProperties": _NUMBER},
    "json_schema": {"type": "object"},
    "grammar": {"type": "string", "minLength": 1},
    "cache_prompt": _FLAG,
}


def _body(**members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**_COMMON, **members},
        "required": list(members),
        "additionalProperties": False,
        "not": {"required": ["json_schema", "grammar"]},
    }


_COMPLETION = _body(prompt=_PROMPT)
_INFILL = _body(input_prefix=_TEXT, input_suffix=_TEXT)
_RESULT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "index": {"type": "integer", "minimum": 0},
        "content": _TEXT,
        "tokens": {"type": "array", "items": _WHOLE},
        "stop": _FLAG,
        "stop_type": _TEXT,
        "stopping_word": _TEXT,
        "tokens_predicted": _WHOLE,
        "tokens_evaluated": _WHOLE,
        "timings": {"type": "object", "properties": {"cache_n": _WHOLE}},
        "completion_probabilities": {"type": "array", "items": {"type": "object", "required": ["token", "logprob"]}},
    },
    "required": ["index", "content", "stop"],
}


def check_body(operation: str, body: bytes) -> None:
    """Raise jsonschema's ValidationError for a body with anything undocumented."""
    sent = orjson.loads(body)
    assert operation == "completions", operation
    jsonschema.validate(sent, _INFILL if "input_prefix" in sent else _COMPLETION)


def check_answer(body: bytes) -> None:
    """Raise unless the response has the documented shape."""
    answer = orjson.loads(body)
    for result in answer if isinstance(answer, list) else [answer]:
        jsonschema.validate(result, _RESULT)
        assert result["stop"] is True


def check_events(events: list[bytes]) -> None:
    for payload in events:
        event = orjson.loads(payload)
        if event is not None and "error" not in event:
            jsonschema.validate(event, _RESULT)
