"""Counts the tokens of a prompt by requests to the engine: writes the requests for a call, and reads the responses.

Sources: vLLM 0.33 `entrypoints/serve/tokenize`; SGLang 0.5 `serving_tokenize.py` and `http_server.py`; TGI's
`router/src/server.rs`; the llama.cpp server of xllamacpp 2026.10 (checked by tests/e2e/test_engine_tokenizer.py);
`anthropic` 2.12.0 `MessageCountTokensParams` and `lib/vertex`; botocore 1.44.5 service model `bedrock-runtime`,
operation `CountTokens`; `google-genai` 3.4.0 `models.py` and "Counting tokens" pages; read in November 2026.
"""

import base64
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

import orjson

from providers.completion import count_of
from providers.dialects.gemini.model_path import model_path
from providers.dialects.platforms.vertex_address import resolve_host
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import AnyOperation, Operation


@dataclass(frozen=True, slots=True)
class CountRequest:
    """One request to the engine, to be sent with the headers of the call that is counted. `body` is empty for GET."""

    method: Literal["GET", "POST"]
    url: str
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Count:
    """The tokens of the prompt, and the context window for prompt and response together. Each is `None` if the engine
    did not report it."""

    tokens: int | None = None
    window: int | None = None


@dataclass(frozen=True, slots=True)
class _MeasuredCall:
    """The call to count: its JSON body, its operation, the engine's URL, and the model. `root` is the URL without
    `/v1`."""

    body: JsonObject
    operation: AnyOperation
    base_url: str
    model: str

    @property
    def root(self) -> str:
        return self.base_url.removesuffix("/v1")


_Steps = Generator[CountRequest, JsonValue, Count]


class Counting:
    """The requests to one engine that count one call.

    The caller sends the request that `next` returns and passes its response to `answer`, until `next` returns `None`.
    Then `count` is the result. If the engine returns an error or an unreadable response, its counts are missing.
    """

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._request: CountRequest | None = None
        self.count = Count()
        self._advance(None)

    def next(self) -> CountRequest | None:
        """Return the request to send, which is the same until its response is passed in; `None` after the last
        request."""
        return self._request

    def answer(self, status: int, body: bytes) -> None:
        """Read the engine's response to the current request."""
        value: JsonValue = None
        if 200 <= status < 300:
            try:
                value = orjson.loads(body)
            except orjson.JSONDecodeError:
                value = None
        self._advance(value)

    def _advance(self, value: JsonValue) -> None:
        try:
            self._request = self._steps.send(value)
        except StopIteration as end:
            self._request, self.count = None, end.value


Tokenizer = Callable[[JsonObject, AnyOperation, str, str], Counting]
"""Returns the counting requests for a call. Its arguments are the call's JSON body with one prompt, its operation, and
the deployment's `base_url` and `upstream_model`."""


def _tokenizer(steps: Callable[[_MeasuredCall], _Steps]) -> Tokenizer:
    return lambda body, operation, base_url, model: Counting(steps(_MeasuredCall(body, operation, base_url, model)))


# The fields of a chat that templates read.
_CHAT_FIELDS = (
    "messages",
    "tools",
    "tool_choice",
    "reasoning_effort",
    "chat_template",
    "chat_template_kwargs",
    "continue_final_message",
    "add_generation_prompt",
    "add_special_tokens",
)


def _vllm(call: _MeasuredCall) -> _Steps:
    """Count by `/tokenize`, which reports tokens and window. If there is nothing to tokenize, the list of models has
    the window."""
    tokens, body = _count_ids(call), _TOKENIZE_BODIES[call.operation](call)
    if body is None:
        return Count(tokens, (yield from _listed_window(call)))
    answer = yield _post(call.root + "/tokenize", body)
    return Count(_count_in(answer, "count"), _positive(answer, "max_model_len"))


def _sglang(call: _MeasuredCall) -> _Steps:
    """Count by `/tokenize`, which exists since 0.5 for prompts and since a later version for chats. `max_model_len` in
    its response is the limit of the tokenizer, which often has none. The list of models has the engine's window."""
    tokens = _count_ids(call)
    if tokens is None and (body := _TOKENIZE_BODIES[call.operation](call)) is not None:
        answer = yield _post(call.root + "/tokenize", body)
        tokens = _count_in(answer, "count")
    return Count(tokens, (yield from _listed_window(call)))


def _llamacpp(call: _MeasuredCall) -> _Steps:
    """Count by `/tokenize`. A chat is rendered first, from the complete body, because the template may read any field.
    The window is the window of one slot."""
    tokens, text = _count_ids(call), _prompt(call)
    if call.operation is Operation.CHAT and _only_text(call.body):
        rendered = yield _post(call.root + "/apply-template", call.body)
        text = _field(rendered, "prompt")
    if tokens is None and isinstance(text, str):
        # The server reads the prompt of a completion with the same settings.
        answer = yield _post(call.root + "/tokenize", {"content": text, "add_special": True, "parse_special": True})
        tokens = _length(_field(answer, "tokens"))
    answer = yield CountRequest("GET", call.root + "/props")
    return Count(tokens, _positive(_field(answer, "default_generation_settings"), "n_ctx"))


def _tgi(call: _MeasuredCall) -> _Steps:
    """Count a prompt by `/tokenize` and a chat by `/chat_tokenize`, which list the tokens. `/info` has the window."""
    tokens, text = None, _prompt(call)
    if call.operation is Operation.CHAT and _only_text(call.body):
        answer = yield _post(call.root + "/chat_tokenize", call.body)
        tokens = _length(_field(answer, "tokenize_response"))
    elif isinstance(text, str):
        answer = yield _post(call.root + "/tokenize", {"inputs": text})
        tokens = _length(answer)
    answer = yield CountRequest("GET", call.root + "/info")
    return Count(tokens, _positive(answer, "max_total_tokens"))


_COUNTED_FIELDS = ("messages", "system", "tools", "tool_choice", "thinking", "output_config")


def _anthropic(call: _MeasuredCall) -> _Steps:
    """Count by the vendor's endpoint, which counts images too and is free of charge. The vendor calls the number an
    estimate. No response has the window."""
    body: JsonObject = {"model": call.model, **_pick(call.body, _COUNTED_FIELDS)}
    answer = yield _post(call.root + "/v1/messages/count_tokens", body)
    return Count(_count_in(answer, "input_tokens"))


def _anthropic_vertex(call: _MeasuredCall) -> _Steps:
    """Count by Vertex AI. A location has one endpoint for all models, so the model is in the body. Not every location
    supports counting."""
    body: JsonObject = {"model": call.model, **_pick(call.body, ("anthropic_version", *_COUNTED_FIELDS))}
    answer = yield _post(resolve_host(call.base_url) + "/publishers/anthropic/models/count-tokens:rawPredict", body)
    return Count(_count_in(answer, "input_tokens"))


def _bedrock(call: _MeasuredCall) -> _Steps:
    """Count a conversation of Converse, without the inference settings."""
    read = ("messages", "system", "toolConfig", "additionalModelRequestFields")
    return _counted_on_bedrock(call, {"converse": _pick(call.body, read)})


def _bedrock_anthropic(call: _MeasuredCall) -> _Steps:
    """Count a complete body of InvokeModel, which the service accepts as base64 of its bytes."""
    return _counted_on_bedrock(call, {"invokeModel": {"body": base64.b64encode(orjson.dumps(call.body)).decode()}})


_GEOGRAPHY = re.compile(r"^(?:us-gov|us|eu|apac|au|jp|ca|global)\.")
"""The prefix of an inference profile's id, which the model's id follows."""


def without_geography(model: str) -> str:
    """Return the id of the model behind an inference profile's id."""
    return _GEOGRAPHY.sub("", model)


def _counted_on_bedrock(call: _MeasuredCall, given: JsonObject) -> _Steps:
    """Count for the model behind an inference profile, then for the profile, for which Bedrock mostly does not count.
    An ARN does not show its model."""
    tokens = None
    for model in dict.fromkeys((without_geography(call.model), call.model)):
        answer = yield _post(f"{call.base_url}/model/{quote(model, safe='')}/count-tokens", {"input": given})
        tokens = _count_in(answer, "inputTokens")
        if tokens is not None:
            break
    return Count(tokens)


def _gemini(call: _MeasuredCall) -> _Steps:
    """Count the complete call, whose body must name its model again. No window is returned, since Gemini has separate
    windows for prompt and response."""
    path = model_path("/models/{model}", call.model)
    whole: JsonObject = {"model": path.removeprefix("/"), **call.body}
    answer = yield _post(f"{resolve_host(call.base_url)}{path}:countTokens", {"generateContentRequest": whole})
    return Count(_count_in(answer, "totalTokens"))


def _vertex(call: _MeasuredCall) -> _Steps:
    """Count the fields that make up the prompt."""
    path = model_path("/publishers/google/models/{model}", call.model)
    body = _pick(call.body, ("contents", "systemInstruction", "tools", "generationConfig"))
    answer = yield _post(f"{resolve_host(call.base_url)}{path}:countTokens", body)
    return Count(_count_in(answer, "totalTokens"))


TOKENIZERS: Mapping[str, Tokenizer] = {
    "vllm": _tokenizer(_vllm),
    "sglang": _tokenizer(_sglang),
    "llamacpp": _tokenizer(_llamacpp),
    "anthropic": _tokenizer(_anthropic),
    "anthropic_vertex": _tokenizer(_anthropic_vertex),
    "bedrock": _tokenizer(_bedrock),
    "bedrock_anthropic": _tokenizer(_bedrock_anthropic),
    "gemini": _tokenizer(_gemini),
    "tgi": _tokenizer(_tgi),
    "vertex": _tokenizer(_vertex),
}
"""The tokenizers by the value of a profile's `tokenizer`."""


def _pick(body: JsonObject, names: Iterable[str]) -> JsonObject:
    return {name: body[name] for name in names if name in body}


def _post(url: str, body: JsonObject) -> CountRequest:
    return CountRequest("POST", url, orjson.dumps(body))


def _chat_body(call: _MeasuredCall) -> JsonObject | None:
    return {"model": call.model, **_pick(call.body, _CHAT_FIELDS)} if _only_text(call.body) else None


def _prompt_body(call: _MeasuredCall) -> JsonObject | None:
    text = _prompt(call)
    if not isinstance(text, str) or call.body.get("suffix"):
        return None
    return {"model": call.model, "prompt": text, "add_special_tokens": call.body.get("add_special_tokens", True)}


_TOKENIZE_BODIES: Mapping[AnyOperation, Callable[[_MeasuredCall], JsonObject | None]] = {
    Operation.CHAT: _chat_body,
    Operation.COMPLETIONS: _prompt_body,
}
"""By operation: the function that returns the body of `/tokenize` of vLLM and SGLang. It returns `None` if the prompt
is not only text, or if the engine reads more than the prompt."""


def _listed_window(call: _MeasuredCall) -> Generator[CountRequest, JsonValue, int | None]:
    """Return the window of the call's model from the list of models; `None` if the list does not have it."""
    entries = _field((yield CountRequest("GET", call.base_url + "/models")), "data")
    found = [entry for entry in entries if _field(entry, "id") == call.model] if isinstance(entries, list) else []
    return _positive(found[0], "max_model_len") if found else None


def _prompt(call: _MeasuredCall) -> JsonValue:
    """Return a completion's prompt. A list with one prompt is unwrapped."""
    prompt = call.body.get("prompt") if call.operation is Operation.COMPLETIONS else None
    return prompt[0] if isinstance(prompt, list) and len(prompt) == 1 and not _is_id(prompt[0]) else prompt


def _count_ids(call: _MeasuredCall) -> int | None:
    """Return the number of token ids of a completion's prompt; `None` if the prompt is not a list of token ids."""
    prompt = _prompt(call)
    return len(prompt) if isinstance(prompt, list) and all(map(_is_id, prompt)) else None


def _is_id(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _only_text(body: JsonObject) -> bool:
    """Return whether a chat's messages hold only text. The placeholder of an image in the template does not have as
    many tokens as the image."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return False
    contents = [_field(message, "content") for message in messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return all(_field(part, "type") == "text" for part in parts)


def _field(holder: JsonValue, name: str) -> JsonValue:
    return holder.get(name) if isinstance(holder, dict) else None


def _length(value: JsonValue) -> int | None:
    return len(value) if isinstance(value, list) else None


def _count_in(holder: JsonValue, name: str) -> int | None:
    return count_of(_field(holder, name))


def _positive(holder: JsonValue, name: str) -> int | None:
    return _count_in(holder, name) or None
