"""A fake of OpenAI's completions and chat APIs, for all vendors that are compatible with them.

Shapes: OpenAI OpenAPI 2.3.0 `CreateCompletionResponse`, `CreateChatCompletionResponse` and their chunks; the token
count endpoints are from vLLM, SGLang, llama.cpp and TGI.
"""

from collections.abc import Sequence

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineChoice, EngineRequest, constrained, prompt_tokens
from tests.conformance.fake_dialect import (
    EngineAnswer,
    FakeDialect,
    FakeEndpoint,
    conversation,
    pieces,
    strings,
    text_of,
    tool_of,
    whole_number,
)
from tests.providers.dialects.responses.fake_endpoint import RESPONSES
from tests.support.http_scripts import DONE, data_frames

CREATED = 1_795_000_000


def _prompts(body: JsonObject) -> tuple[str, ...]:
    prompt = body.get("prompt")
    if prompt is None:
        return (conversation(body),)
    if not isinstance(prompt, list) or isinstance(prompt[0], str):
        return strings(prompt)
    sequences = prompt if isinstance(prompt[0], list) else [prompt]
    return tuple(" ".join(map(str, ids)) for ids in sequences if isinstance(ids, list))


def _read_request(body: JsonObject) -> EngineRequest:
    return EngineRequest(
        _prompts(body),
        n=whole_number(body, "n") or 1,
        best_of=whole_number(body, "best_of") or 1,
        stops=strings(body.get("stop")),
        keep_stop=bool(body.get("include_stop_str_in_output") or body.get("no_stop_trim")),
        echo=body.get("echo") is True,
        limit=whole_number(body, "max_tokens", "max_completion_tokens"),
        text=constrained(body),
        tool=tool_of(body),
    )


def _usage(answered: EngineAnswer) -> JsonObject:
    prompt, generated = answered.prompt_tokens, answered.generated
    return {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated}


def _envelope(kind: str, body: JsonObject) -> JsonObject:
    return {"id": "answer-1", "object": kind, "created": CREATED, "model": body.get("model", "m")}


def _content_logprobs(written: EngineChoice) -> JsonObject:
    entries: list[JsonValue] = []
    for token, logprob in written.tokens:
        own: JsonObject = {"token": token, "logprob": logprob or 0.0, "bytes": list(token.encode())}
        other: JsonObject = {"token": "?", "logprob": -3.0, "bytes": [63]}
        entries.append({**own, "top_logprobs": [own, other]})
    return {"content": entries, "refusal": None}


def _array_logprobs(written: EngineChoice) -> JsonObject:
    offsets: list[JsonValue] = []
    place = 0
    for token, _ in written.tokens:
        offsets.append(place)
        place += len(token)
    tops: list[JsonValue] = [None if value is None else {token: value, "?": -3.0} for token, value in written.tokens]
    return {
        "tokens": [token for token, _ in written.tokens],
        "token_logprobs": [logprob for _, logprob in written.tokens],
        "top_logprobs": tops,
        "text_offset": offsets,
    }


def _logprobs(body: JsonObject, written: EngineChoice, arrays: bool) -> JsonObject | None:
    wanted = body.get("logprobs")
    if wanted is None or wanted is False:
        return None
    return _array_logprobs(written) if arrays and wanted is not True else _content_logprobs(written)


def _calls(written: EngineChoice) -> list[JsonValue]:
    return [{"index": 0, "id": "call_1", "type": "function", "function": {"name": written.tool, "arguments": "{}"}}]


def _chat_whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    choices: list[JsonValue] = []
    for index, written in enumerate(answered.choices):
        message: JsonObject = {"role": "assistant", "content": written.text}
        if written.tool is not None:
            message = {"role": "assistant", "content": None, "tool_calls": _calls(written)}
        logprobs = _logprobs(body, written, arrays=False)
        choices.append({"index": index, "message": message, "logprobs": logprobs, "finish_reason": written.finish})
    return {**_envelope("chat.completion", body), "choices": choices, "usage": _usage(answered)}


def _text_whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    choices: list[JsonValue] = [
        {
            "index": index,
            "text": written.text,
            "logprobs": _logprobs(body, written, arrays=True),
            "finish_reason": written.finish,
        }
        for index, written in enumerate(answered.choices)
    ]
    return {**_envelope("text_completion", body), "choices": choices, "usage": _usage(answered)}


def _streamed(body: JsonObject, head: JsonObject, choices: Sequence[JsonObject], answered: EngineAnswer) -> list[bytes]:
    payloads: list[JsonObject] = [{**head, "choices": [choice]} for choice in choices]
    options = body.get("stream_options")
    if answered.counts_unasked or (isinstance(options, dict) and options.get("include_usage") is True):
        payloads.append({**head, "choices": [], "usage": _usage(answered)})
    return [*data_frames(*payloads), DONE]


def _chat_frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    choices: list[JsonObject] = []
    for index, written in enumerate(answered.choices):
        deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
        if written.tool is not None:
            deltas.append({"tool_calls": _calls(written)})
        elif (logprobs := _logprobs(body, written, arrays=False)) is not None:
            choices.append({"index": index, "delta": {"content": written.text}, "logprobs": logprobs})
        else:
            deltas += [{"content": piece} for piece in pieces(written)]
        choices += [{"index": index, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": index, "delta": {}, "finish_reason": written.finish})
    return _streamed(body, _envelope("chat.completion.chunk", body), choices, answered)


def _text_frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    choices: list[JsonObject] = []
    for index, written in enumerate(answered.choices):
        logprobs = _logprobs(body, written, arrays=True)
        texts = [written.text] if logprobs else pieces(written)
        choices += [{"index": index, "text": text, "logprobs": logprobs, "finish_reason": None} for text in texts]
        choices.append({"index": index, "text": "", "logprobs": None, "finish_reason": written.finish})
    return _streamed(body, _envelope("text_completion", body), choices, answered)


def too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    """Return OpenAI's error for a call that is too large, which most of the family uses too."""
    prompt, limit = prompt_tokens(request), request.limit or 0
    message = (
        f"This model's maximum context length is {WINDOW} tokens. However, you requested {prompt + limit} tokens "
        f"({prompt} in the messages, {limit} in the completion). Please reduce their length."
    )
    code = "context_length_exceeded"
    return 400, {"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}}


def _text_to_count(body: JsonObject) -> str:
    if "messages" in body:
        return conversation(body)
    return text_of(body.get("prompt", body.get("content", body.get("inputs"))))


def _counted(body: JsonObject) -> JsonValue:
    numbers: list[JsonValue] = list(range(len(_text_to_count(body).split())))
    return {"count": len(numbers), "max_model_len": WINDOW, "tokens": numbers}


def _rendered(body: JsonObject) -> JsonValue:
    return {"prompt": conversation(body)}


def _properties(body: JsonObject) -> JsonValue:
    return {"default_generation_settings": {"n_ctx": WINDOW}}


OPENAI = FakeDialect(
    calls=(
        # Fill-in-the-middle requests have a response in the shape of chat.
        FakeEndpoint(("/chat/completions", "/fim/completions"), _read_request, _chat_whole, _chat_frames),
        FakeEndpoint(("/completions",), _read_request, _text_whole, _text_frames),
        RESPONSES,
    ),
    too_large=too_large,
    questions={"/tokenize": _counted, "/apply-template": _rendered, "/props": _properties},
)

FAKE_DIALECTS = {"openai": OPENAI}
