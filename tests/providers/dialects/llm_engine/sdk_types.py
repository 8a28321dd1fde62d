"""Check LLM Engine's completions against its client's types (scale-llm-engine 0.0.0beta45).

The types accept unknown fields and several constraints at once; both are checked here. The client looks for a newer
version of itself unless LLM_ENGINE_DISABLE_VERSION_CHECK is set.
"""

import os
from typing import Any  # the SDK is not installed for the type check

import orjson

os.environ.setdefault("LLM_ENGINE_DISABLE_VERSION_CHECK", "true")

from llmengine.data_types import (  # type: ignore[import-not-found]
    CompletionStreamV1Response,
    CompletionSyncV1Request,
    CompletionSyncV1Response,
)

_GUIDED = {"guided_json", "guided_regex", "guided_choice", "guided_grammar"}


def check_body(operation: str, body: bytes) -> None:
    """Raise AssertionError or pydantic's ValidationError for anything that the server would refuse or ignore."""
    sent: dict[str, Any] = orjson.loads(body)
    assert operation == "completions", operation
    assert sent.keys() <= set(CompletionSyncV1Request.__fields__), sent.keys()
    assert len(_GUIDED & sent.keys()) <= 1
    CompletionSyncV1Request.parse_obj(sent)


def check_answer(body: bytes) -> None:
    """Raise unless the client would read the response."""
    CompletionSyncV1Response.parse_obj(orjson.loads(body))


def check_events(events: list[bytes]) -> None:
    for payload in events:
        CompletionStreamV1Response.parse_obj(orjson.loads(payload))
