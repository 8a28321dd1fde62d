"""Check watsonx.ai against its SDK's parameters (ibm-watsonx-ai 1.8.1).

The types have names but no ranges; the ranges of the API reference are checked here. Only the file of types of the
package is loaded, because the rest would load pandas.
"""

from enum import StrEnum
from typing import Any  # the SDK is not installed for the type check

import orjson

from tests.contracts.load_single_module import load_single_module

_TYPES = load_single_module(
    "ibm-watsonx-ai", "foundation_models/schema/_api.py", {"ibm_watsonx_ai.utils.utils": {"StrEnum": StrEnum}}
)
_OWNER = {"model_id", "project_id", "space_id"}
_CHAT = {"messages", "tools", "tool_choice", "tool_choice_option"}


def check_body(operation: str, body: bytes) -> None:
    """Raise AssertionError or TypeError for anything that the server would refuse or ignore."""
    sent: dict[str, Any] = orjson.loads(body)
    if "messages" in sent:
        parameters = {name: value for name, value in sent.items() if name not in _OWNER | _CHAT}
        assert _TYPES.TextChatParameters(**parameters).to_dict() == parameters
        assert sent.get("tool_choice_option", "none") in ("none", "auto", "required")
        assert isinstance(sent.get("tool_choice", {}), dict)
        assert len(parameters.get("stop", [])) <= 4
        return
    assert sent.keys() <= _OWNER | {"input", "parameters"}, sent.keys()
    assert isinstance(sent["input"], str)
    parameters = sent.get("parameters", {})
    assert _TYPES.TextGenParameters(**parameters).to_dict() == parameters
    _TYPES.ReturnOptionProperties(**parameters.get("return_options", {}))
    assert parameters.get("decoding_method", "greedy") in ("greedy", "sample")
    assert len(parameters.get("stop_sequences", [])) <= 6
    assert 0 <= parameters.get("temperature", 0) <= 2
    assert 1 <= parameters.get("top_k", 1) <= 100
    assert 1 <= parameters.get("repetition_penalty", 1) <= 2


def check_answer(body: bytes) -> None:
    """Raise unless the response has the fields that the SDK, which reads it without types, looks for."""
    answer = orjson.loads(body)
    if "choices" in answer:
        assert all("message" in choice or "delta" in choice for choice in answer["choices"])
    elif "errors" in answer:
        assert all(error.keys() >= {"code", "message"} for error in answer["errors"])
    else:
        assert all("generated_text" in result for result in answer.get("results", []))


def check_events(events: list[bytes]) -> None:
    for payload in events:
        check_answer(payload)
