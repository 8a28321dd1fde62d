"""Check Gemini's bodies and responses against the types of the vendor's own client.

The client forbids unknown fields everywhere and checks base64. Unknown words of its enumerations are only warnings, so
the warnings count as errors here. Types: `google-genai` 3.4.0 `Content`, `GenerationConfig`, `Tool`, `ToolConfig`,
`GenerateContentResponse`.
"""

import json
import warnings
from collections.abc import Iterable, Mapping

# `google.genai` is not installed for the type check, but another package in `google` may be.
from google.genai import types  # type: ignore[import-not-found,import-untyped,unused-ignore]
from pydantic import TypeAdapter

_MEMBERS: Mapping[str, TypeAdapter[object]] = {
    "contents": TypeAdapter(list[types.Content]),
    "systemInstruction": TypeAdapter(types.Content),
    "tools": TypeAdapter(list[types.Tool]),
    "toolConfig": TypeAdapter(types.ToolConfig),
    "generationConfig": TypeAdapter(types.GenerationConfig),
    "safetySettings": TypeAdapter(list[types.SafetySetting]),
    "serviceTier": TypeAdapter(types.ServiceTier),
    "cachedContent": TypeAdapter(str),
    "labels": TypeAdapter(dict[str, str]),
}


def check_body(operation: str, body: bytes) -> None:
    """Raise on a body of `generateContent` that the client would not send."""
    members = json.loads(body)
    if operation != "chat" or not members.get("contents"):
        raise ValueError(f"{operation}: there is nothing but contents to ask for")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, value in members.items():
            if name not in _MEMBERS:
                raise ValueError(f"the client has no member {name!r}")
            _MEMBERS[name].validate_json(json.dumps(value), strict=False)
    _check_rules(members)


def _check_rules(body: Mapping[str, object]) -> None:
    """Raise for a body that the service refuses although its types allow it."""
    config = body.get("generationConfig")
    if isinstance(config, dict):
        thinking = config.get("thinkingConfig", {})
        if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
            raise ValueError("a budget and a level exclude each other")
        if "responseSchema" in config and "responseJsonSchema" in config:
            raise ValueError("two schemas exclude each other")
        if ("responseSchema" in config or "responseJsonSchema" in config) and "responseMimeType" not in config:
            raise ValueError("a schema needs its media type")
        if len(config.get("stopSequences", ())) > 5:
            raise ValueError("there are more than 5 stop sequences")
    for content in body["contents"]:  # type: ignore[attr-defined]  # JSON, whose types were held above
        if content["role"] not in ("user", "model") or not content["parts"]:
            raise ValueError(f"a turn of {content['role']!r} with {len(content['parts'])} parts")
        for part in content["parts"]:
            kinds = part.keys() & {"text", "inlineData", "fileData", "functionCall", "functionResponse"}
            if len(kinds) != 1 or part.get("text") == "":
                raise ValueError(f"a part must hold one thing: {sorted(part)}")


def check_answer(body: bytes) -> None:
    """Raise for a response that the client could not read."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        types.GenerateContentResponse.model_validate_json(body)


def check_events(payloads: Iterable[bytes]) -> None:
    """Raise unless the client would read every event of a stream."""
    for payload in payloads:
        check_answer(payload)
