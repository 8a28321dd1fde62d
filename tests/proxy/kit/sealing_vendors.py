"""Vendors that seal their models' reasoning, by account, and refuse reasoning that another account has sealed.

The first segment of a vendor's path names the account. A conversation without a tool's result gets reasoning, a text
and a call; one with a result gets a text. Shapes: the vendors' SDKs, as the dialects' modules name them; the refusals
are quoted from public issue threads.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import orjson

from providers.framing.parse_aws_eventstream import encode
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.responses.kit import events_of, response, sse
from tests.support.http_scripts import DONE, body_answer, data_frames, json_answer, sse_answer
from tests.support.vendor_script import Received, Script

ARGUMENTS: Final[JsonObject] = {"a": 1}
SAID: Final = "Let me look."
DONE_TEXT: Final = "It is 1."
AWS_STREAM: Final = "application/vnd.amazon.eventstream"


def seal_of(account: str) -> str:
    """Return an account's seal: base64 without padding, as all vendors' are."""
    return b64encode(f"seal-of-{account}".encode()).decode()


@dataclass(frozen=True, slots=True)
class Sealing:
    """One vendor's API: its settings in a config file, its model, its responses and its refusals."""

    settings: str
    model: str
    refusal: JsonObject
    whole: Callable[[str, bool], JsonObject]
    stream: Callable[[JsonObject], Script]
    lacks: Callable[[JsonObject], JsonObject | None]


@dataclass(slots=True)
class SealingAccounts:
    """The accounts of one vendor on a fake server. The accounts in `down` return 500."""

    vendor: Sealing
    down: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)

    def answer(self, request: Received) -> Script:
        account = request.target.split("/")[1]
        if account in self.down:
            return json_answer(500, {"error": {"message": "down", "type": "server_error"}})
        others = {name: seal_of(name).encode() in request.body for name in ("a", "b") if name != account}
        if any(others.values()):
            self.refused.append(account)
            return json_answer(400, self.vendor.refusal)
        body: JsonObject = orjson.loads(request.body)
        if (lack := self.vendor.lacks(body)) is not None:
            return json_answer(400, lack)
        whole = self.vendor.whole(account, b"RESULT" in request.body)
        streams = bool(body.get("stream")) or "stream" in request.target.rpartition("/")[2].lower()
        return self.vendor.stream(whole) if streams else json_answer(200, whole)


def _nothing(body: JsonObject) -> JsonObject | None:
    return None


def _objects(value: JsonValue) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# OpenAI and xAI -------------------------------------------------------------------------------------------------------


def _responses_whole(account: str, answered: bool) -> JsonObject:
    sealed: JsonObject = {
        "type": "reasoning",
        "id": f"rs_{account}",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": seal_of(account),
    }
    text: JsonObject = {"type": "output_text", "text": DONE_TEXT if answered else SAID, "annotations": []}
    message: JsonObject = {"type": "message", "id": f"msg_{account}", "role": "assistant", "content": [text]}
    arguments = orjson.dumps(ARGUMENTS).decode()
    call: JsonObject = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": arguments}
    return response(output=[sealed, message] if answered else [sealed, message, call])


def _responses_stream(whole: JsonObject) -> Script:
    return sse_answer([sse(event) for event in events_of(whole)])


def _lacks_reasoning(body: JsonObject) -> JsonObject | None:
    """Refuse an item id that followed reasoning which is missing now."""
    items = _objects(body.get("input"))
    if any(item.get("type") == "function_call" and "id" in item for item in items) and not any(
        item.get("type") == "reasoning" for item in items
    ):
        said = "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_a'."
        return {"error": {"message": said, "type": "invalid_request_error", "param": "input", "code": None}}
    return None


# Anthropic ------------------------------------------------------------------------------------------------------------


def _messages_whole(account: str, answered: bool) -> JsonObject:
    thought: JsonObject = {"type": "thinking", "thinking": "hm", "signature": seal_of(account)}
    text: JsonObject = {"type": "text", "text": DONE_TEXT if answered else SAID}
    call: JsonObject = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": ARGUMENTS}
    content: list[JsonValue] = [thought, text] if answered else [thought, text, call]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": content,
        "stop_reason": "end_turn" if answered else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 7},
    }


def _messages_events(whole: JsonObject) -> Iterable[JsonObject]:
    ended: JsonObject = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(_objects(whole["content"])):
        begun, deltas = _block_deltas(block)
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **begun}}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def _block_deltas(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    match block["type"]:
        case "thinking":
            signed: JsonObject = {"type": "signature_delta", "signature": block["signature"]}
            said: JsonObject = {"type": "thinking_delta", "thinking": block["thinking"]}
            return {"thinking": "", "signature": ""}, [said, signed]
        case "text":
            return {"text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case _:
            given = orjson.dumps(block["input"]).decode()
            return {"input": {}}, [{"type": "input_json_delta", "partial_json": given}]


def _messages_stream(whole: JsonObject) -> Script:
    return sse_answer([sse(event) for event in _messages_events(whole)])


def _lacks_thinking(body: JsonObject) -> JsonObject | None:
    """Refuse a thinking budget for a tool loop that lacks its thinking blocks."""
    wanted, turns = body.get("thinking"), _objects(body.get("messages"))
    if not isinstance(wanted, dict) or wanted.get("type") != "enabled":
        return None
    if len(turns) < 2 or not any(block.get("type") == "tool_result" for block in _objects(turns[-1]["content"])):
        return None
    if any(block.get("type") == "thinking" for block in _objects(turns[-2]["content"])[:1]):
        return None
    return _claude("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.")


def _claude(message: str) -> JsonObject:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


# Bedrock --------------------------------------------------------------------------------------------------------------


def _converse_whole(account: str, answered: bool) -> JsonObject:
    thought: JsonObject = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": seal_of(account)}}}
    call: JsonObject = {"toolUse": {"toolUseId": "t1", "name": "f", "input": ARGUMENTS}}
    content: list[JsonValue] = [thought, {"text": DONE_TEXT}] if answered else [thought, {"text": SAID}, call]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "end_turn" if answered else "tool_use",
        "usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12},
        "metrics": {"latencyMs": 7},
    }


def _aws_frame(kind: str, payload: JsonObject) -> bytes:
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode(headers, orjson.dumps(payload))


def _converse_stream(whole: JsonObject) -> Script:
    output = whole["output"]
    message = output["message"] if isinstance(output, dict) else None
    content = _objects(message["content"] if isinstance(message, dict) else None)
    frames = [_aws_frame("messageStart", {"role": "assistant"})]
    for index, block in enumerate(content):
        at: JsonObject = {"contentBlockIndex": index}
        for kind, payload in _converse_parts(block):
            frames.append(_aws_frame(kind, {**at, **payload}))
        frames.append(_aws_frame("contentBlockStop", at))
    frames.append(_aws_frame("messageStop", {"stopReason": whole["stopReason"]}))
    frames.append(_aws_frame("metadata", {"usage": whole["usage"], "metrics": whole["metrics"]}))
    return body_answer(200, b"".join(frames), [("content-type", AWS_STREAM)])


def refused_by_frame(refusal: JsonObject) -> Script:
    """Return a stream that begins with a refusal in place of events."""
    kind = {":exception-type": "validationException", ":message-type": "exception"}
    frame = encode({**kind, ":content-type": "application/json"}, orjson.dumps(refusal))
    return body_answer(200, frame, [("content-type", AWS_STREAM)])


def _converse_parts(block: JsonObject) -> Iterable[tuple[str, JsonObject]]:
    match block:
        case {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}:
            yield "contentBlockDelta", {"delta": {"reasoningContent": {"text": text}}}
            yield "contentBlockDelta", {"delta": {"reasoningContent": {"signature": signature}}}
        case {"toolUse": {"toolUseId": identity, "name": name, "input": given}}:
            yield "contentBlockStart", {"start": {"toolUse": {"toolUseId": identity, "name": name}}}
            yield "contentBlockDelta", {"delta": {"toolUse": {"input": orjson.dumps(given).decode()}}}
        case _:
            yield "contentBlockDelta", {"delta": block}


# Google ---------------------------------------------------------------------------------------------------------------


def _gemini_whole(account: str, answered: bool) -> JsonObject:
    thought: JsonObject = {"text": "hm", "thought": True}
    call: JsonObject = {
        "functionCall": {"id": "g1", "name": "f", "args": ARGUMENTS},
        "thoughtSignature": seal_of(account),
    }
    text: JsonObject = {"text": DONE_TEXT, "thoughtSignature": seal_of(account)}
    parts: list[JsonValue] = [thought, text] if answered else [thought, {"text": SAID}, call]
    candidate: JsonObject = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    counts: JsonObject = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
    return {"candidates": [candidate], "usageMetadata": counts, "responseId": "r1"}


def _gemini_stream(whole: JsonObject) -> Script:
    return sse_answer(data_frames(whole))


def _google(message: str) -> JsonObject:
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def _lacks_signature(body: JsonObject) -> JsonObject | None:
    """Refuse a turn whose first call has no signature."""
    for content in _objects(body.get("contents")):
        calls = [part for part in _objects(content.get("parts")) if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            return _google("Function call is missing a thought_signature in functionCall parts.")
    return None


# Google, in OpenAI's form ---------------------------------------------------------------------------------------------


def _compat_whole(account: str, answered: bool) -> JsonObject:
    signed: JsonObject = {"extra_content": {"google": {"thought_signature": seal_of(account)}}}
    function: JsonObject = {"name": "f", "arguments": orjson.dumps(ARGUMENTS).decode()}
    call: JsonObject = {"index": 0, "id": "g1", "type": "function", "function": function, **signed}
    said: JsonObject = {"role": "assistant", "content": DONE_TEXT, **signed}
    if not answered:
        said = {"role": "assistant", "content": SAID, "tool_calls": [call]}
    choice: JsonObject = {"index": 0, "message": said, "finish_reason": "stop" if answered else "tool_calls"}
    counts: JsonObject = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": counts}


def _compat_stream(whole: JsonObject) -> Script:
    (choice,) = _objects(whole["choices"])
    delta: JsonObject = {"index": 0, "delta": choice["message"], "finish_reason": None}
    last: JsonObject = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    chunk: JsonObject = {**whole, "object": "chat.completion.chunk"}
    return sse_answer([*data_frames({**chunk, "choices": [delta], "usage": None}, {**chunk, "choices": [last]}), DONE])


def _compat_lacks(body: JsonObject) -> JsonObject | None:
    for message in _objects(body.get("messages")):
        calls = _objects(message.get("tool_calls"))
        if calls and "extra_content" not in calls[0]:
            return _google("Function call is missing a thought_signature in functionCall parts.")
    return None


_UNVERIFIED: Final = "The encrypted content gAAA...DQ== could not be verified."
_SIGNATURE: Final = "messages.1.content.0: Invalid `signature` in `thinking` block"
_XAI: Final = "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content."

VENDORS: Final[dict[str, Sealing]] = {
    "openai": Sealing(
        'profile: openai, api_key: k, base_url: "BASE/v1"',
        "gpt-5.6",
        {"error": {"message": _UNVERIFIED, "code": "invalid_encrypted_content", "type": "invalid_request_error"}},
        _responses_whole,
        _responses_stream,
        _lacks_reasoning,
    ),
    "azure": Sealing(
        'profile: azure, api_key: k, base_url: "BASE"',
        "gpt-5.6",
        {"error": {"message": "The encrypted content for item rs_a could not be verified.", "code": None}},
        _responses_whole,
        _responses_stream,
        _lacks_reasoning,
    ),
    "xai": Sealing(
        'profile: xai, api_key: k, base_url: "BASE/v1"',
        "grok-4.5",
        {"code": "invalid-argument", "error": _XAI},
        _responses_whole,
        _responses_stream,
        _nothing,
    ),
    "anthropic": Sealing(
        'profile: anthropic, api_key: k, base_url: "BASE"',
        "claude-sonnet-4-5",
        _claude(_SIGNATURE),
        _messages_whole,
        _messages_stream,
        _lacks_thinking,
    ),
    "bedrock": Sealing(
        'profile: bedrock, api_key: k, base_url: "BASE"',
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        {"message": f"The model returned the following errors: {_SIGNATURE}"},
        _converse_whole,
        _converse_stream,
        _nothing,
    ),
    "gemini": Sealing(
        'profile: gemini, api_key: k, base_url: "BASE/v1beta"',
        "gemini-3-pro",
        _google("Corrupted thought signature."),
        _gemini_whole,
        _gemini_stream,
        _lacks_signature,
    ),
    "gemini_compat": Sealing(
        'profile: gemini_compat, api_key: k, base_url: "BASE/v1beta/openai"',
        "gemini-3-flash",
        _google("Invalid thought signature."),
        _compat_whole,
        _compat_stream,
        _compat_lacks,
    ),
}
