"""Check TensorRT-LLM's models on Triton against the inputs and outputs that their configuration declares.

There is no client library with request types. The names and types are from NVIDIA/TensorRT-LLM's
`triton_backend/all_models/inflight_batcher_llm/tensorrt_llm_bls/config.pbtxt`, November 2026. The server would take any
other field for a parameter that no model reads.
"""

from typing import Any  # wire JSON

import orjson

_INT32, _UINT64 = range(-(2**31), 2**31), range(2**64)
_INPUTS: dict[str, tuple[type, ...] | range] = {
    "text_input": (str,),
    "max_tokens": _INT32,
    "stop_words": (list,),
    "exclude_input_in_output": (bool,),
    "top_k": _INT32,
    "top_p": (int, float),
    "temperature": (int, float),
    "repetition_penalty": (int, float),
    "presence_penalty": (int, float),
    "frequency_penalty": (int, float),
    "min_tokens": _INT32,
    "seed": _UINT64,
    "stream": (bool,),
    "return_num_input_tokens": (bool,),
    "return_num_output_tokens": (bool,),
    "guided_decoding_guide_type": (str,),
    "guided_decoding_guide": (str,),
}
_GUIDES = {"json", "json_schema", "regex", "ebnf_grammar", "structural_tag"}


def check_body(operation: str, body: bytes) -> None:
    """Raise AssertionError for fields that the models have no input for, or of another type."""
    sent: dict[str, Any] = orjson.loads(body)
    assert operation == "completions", operation
    assert {"text_input", "max_tokens"} <= sent.keys() <= _INPUTS.keys(), sent.keys()
    for name, value in sent.items():
        wanted = _INPUTS[name]
        if isinstance(wanted, range):
            assert type(value) is int, (name, value)
            assert value in wanted, (name, value)
        else:
            assert isinstance(value, wanted), (name, value)
            assert isinstance(value, bool) == (bool in wanted), (name, value)
    assert all(isinstance(word, str) for word in sent.get("stop_words", []))
    assert ("guided_decoding_guide" in sent) == ("guided_decoding_guide_type" in sent)
    assert sent.get("guided_decoding_guide_type", "json") in _GUIDES


def check_answer(body: bytes) -> None:
    """Raise unless the body is a response of the generate extension, or its error."""
    answer = orjson.loads(body)
    assert isinstance(answer, dict)
    assert isinstance(answer.get("error", ""), str)
    assert "error" in answer or "text_output" in answer


def check_events(events: list[bytes]) -> None:
    for payload in events:
        check_answer(payload)
