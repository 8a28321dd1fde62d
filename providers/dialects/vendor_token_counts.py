"""Counts a prompt by requests to the engine: which ones to send about a call, and how to read the answers.

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
class Question:
    """One request to the engine, to be sent with the headers of the call that is counted; `body` is empty for GET."""

    method: Literal["GET", "POST"]
    url: str
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Count:
    """The tokens of the prompt, and the window of prompt and answer together; None what the engine did not report."""

    tokens: int | None = None
    window: int | None = None


@dataclass(frozen=True, slots=True)
class _MeasuredCall:
    """The call to count: its JSON body, its operation, and the engine's address; `root` has no `/v1`."""

    body: JsonObject
    operation: AnyOperation
    base_url: str
    model: str

    @property
    def root(self) -> str:
        return self.base_url.removesuffix("/v1")


_Steps = Generator[Question, JsonValue, Count]


class Counting:
    """The requests to one engine about one call.

    Send what `next` returns and pass in each `answer`, until `next` returns None; then `count` is the result. An error
    or an unreadable answer counts as nothing reported.
    """

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._question: Question | None = None
        self.count = Count()
        self._advance(None)

    def next(self) -> Question | None:
        """Return the request to send; the same one until it is answered."""
        return self._question

    def answer(self, status: int, body: bytes) -> None:
        """Pass in the engine's answer to the request."""
        value: JsonValue = None
        if 200 <= status < 300:
            try:
                value = orjson.loads(body)
            except orjson.JSONDecodeError:
                value = None
        self._advance(value)

    def _advance(self, value: JsonValue) -> None:
        try:
            self._question = self._steps.send(value)
        except StopIteration as end:
            self._question, self.count = None, end.value


Tokenizer = Callable[[JsonObject, AnyOperation, str, str], Counting]
"""Begins to count: from the call's JSON body with one prompt, its operation, the deployment's `base_url` and
`upstream_model`."""


def _tokenizer(steps: Callable[[_MeasuredCall], _Steps]) -> Tokenizer:
    return lambda body, operation, base_url, model: Counting(steps(_MeasuredCall(body, operation, base_url, model)))


# The members of a chat that templates read.
_OF_CHAT = (
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
    """`/tokenize` reports both; where there is nothing to tokenize, the list of models has the window."""
    tokens, body = _ids(call), _QUESTIONS[call.operation](call)
    if body is None:
        return Count(tokens, (yield from _listed_window(call)))
    answer = yield _post(call.root + "/tokenize", body)
    return Count(_whole(answer, "count"), _positive(answer, "max_model_len"))


def _sglang(call: _MeasuredCall) -> _Steps:
    """`/tokenize` since 0.5, for chats later than for prompts. Its `max_model_len` is the tokenizer's own limit, often
    none at all; the list of models has the engine's."""
    tokens = _ids(call)
    if tokens is None and (body := _QUESTIONS[call.operation](call)) is not None:
        answer = yield _post(call.root + "/tokenize", body)
        tokens = _whole(answer, "count")
    return Count(tokens, (yield from _listed_window(call)))


def _llamacpp(call: _MeasuredCall) -> _Steps:
    """A chat is rendered first, from the whole body because the template may read any of it. The window is that of one
    slot."""
    tokens, text = _ids(call), _prompt(call)
    if call.operation is Operation.CHAT and _only_text(call.body):
        rendered = yield _post(call.root + "/apply-template", call.body)
        text = _member(rendered, "prompt")
    if tokens is None and isinstance(text, str):
        # As the server reads the prompt of a completion.
        answer = yield _post(call.root + "/tokenize", {"content": text, "add_special": True, "parse_special": True})
        tokens = _length(_member(answer, "tokens"))
    answer = yield Question("GET", call.root + "/props")
    return Count(tokens, _positive(_member(answer, "default_generation_settings"), "n_ctx"))


def _tgi(call: _MeasuredCall) -> _Steps:
    """`/tokenize` lists a prompt's tokens, `/chat_tokenize` those of a chat's body; `/info` has the window."""
    tokens, text = None, _prompt(call)
    if call.operation is Operation.CHAT and _only_text(call.body):
        answer = yield _post(call.root + "/chat_tokenize", call.body)
        tokens = _length(_member(answer, "tokenize_response"))
    elif isinstance(text, str):
        answer = yield _post(call.root + "/tokenize", {"inputs": text})
        tokens = _length(answer)
    answer = yield Question("GET", call.root + "/info")
    return Count(tokens, _positive(answer, "max_total_tokens"))


_COUNTED = ("messages", "system", "tools", "tool_choice", "thinking", "output_config")


def _anthropic(call: _MeasuredCall) -> _Steps:
    """Counts images too, and free of charge; the vendor calls it an estimate. No answer has the window."""
    body: JsonObject = {"model": call.model, **_picked(call.body, _COUNTED)}
    answer = yield _post(call.root + "/v1/messages/count_tokens", body)
    return Count(_whole(answer, "input_tokens"))


def _anthropic_vertex(call: _MeasuredCall) -> _Steps:
    """One endpoint for all models of a location, so that the model is in the body. Not every location counts."""
    body: JsonObject = {"model": call.model, **_picked(call.body, ("anthropic_version", *_COUNTED))}
    answer = yield _post(resolve_host(call.base_url) + "/publishers/anthropic/models/count-tokens:rawPredict", body)
    return Count(_whole(answer, "input_tokens"))


def _bedrock(call: _MeasuredCall) -> _Steps:
    """Counts a conversation, without the settings."""
    read = ("messages", "system", "toolConfig", "additionalModelRequestFields")
    return _counted_on_bedrock(call, {"converse": _picked(call.body, read)})


def _bedrock_anthropic(call: _MeasuredCall) -> _Steps:
    """Counts a whole body of InvokeModel, which the service takes as bytes."""
    return _counted_on_bedrock(call, {"invokeModel": {"body": base64.b64encode(orjson.dumps(call.body)).decode()}})


_GEOGRAPHY = re.compile(r"^(?:us-gov|us|eu|apac|au|jp|ca|global)\.")
"""The prefix of an inference profile's id, before that of its model."""


def without_geography(model: str) -> str:
    """Return the id of the model behind an inference profile's id."""
    return _GEOGRAPHY.sub("", model)


def _counted_on_bedrock(call: _MeasuredCall, given: JsonObject) -> _Steps:
    """Count for the model behind an inference profile, then for the profile, for which Bedrock mostly does not count.
    An ARN does not show its model."""
    tokens = None
    for model in dict.fromkeys((without_geography(call.model), call.model)):
        answer = yield _post(f"{call.base_url}/model/{quote(model, safe='')}/count-tokens", {"input": given})
        tokens = _whole(answer, "inputTokens")
        if tokens is not None:
            break
    return Count(tokens)


def _gemini(call: _MeasuredCall) -> _Steps:
    """Counts the whole call, which names its model once more. Prompt and answer have a window each."""
    path = model_path("/models/{model}", call.model)
    whole: JsonObject = {"model": path.removeprefix("/"), **call.body}
    answer = yield _post(f"{resolve_host(call.base_url)}{path}:countTokens", {"generateContentRequest": whole})
    return Count(_whole(answer, "totalTokens"))


def _vertex(call: _MeasuredCall) -> _Steps:
    """Counts the members that make the prompt."""
    path = model_path("/publishers/google/models/{model}", call.model)
    body = _picked(call.body, ("contents", "systemInstruction", "tools", "generationConfig"))
    answer = yield _post(f"{resolve_host(call.base_url)}{path}:countTokens", body)
    return Count(_whole(answer, "totalTokens"))


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


def _picked(body: JsonObject, names: Iterable[str]) -> JsonObject:
    return {name: body[name] for name in names if name in body}


def _post(url: str, body: JsonObject) -> Question:
    return Question("POST", url, orjson.dumps(body))


def _chat_question(call: _MeasuredCall) -> JsonObject | None:
    return {"model": call.model, **_picked(call.body, _OF_CHAT)} if _only_text(call.body) else None


def _prompt_question(call: _MeasuredCall) -> JsonObject | None:
    text = _prompt(call)
    if not isinstance(text, str) or call.body.get("suffix"):
        return None
    return {"model": call.model, "prompt": text, "add_special_tokens": call.body.get("add_special_tokens", True)}


_QUESTIONS: Mapping[AnyOperation, Callable[[_MeasuredCall], JsonObject | None]] = {
    Operation.CHAT: _chat_question,
    Operation.COMPLETIONS: _prompt_question,
}
"""The body of `/tokenize` of vLLM and SGLang; None where the prompt is not only text, or the engine reads more than the
prompt."""


def _listed_window(call: _MeasuredCall) -> Generator[Question, JsonValue, int | None]:
    """Return the window of the call's model in the list of models."""
    entries = _member((yield Question("GET", call.base_url + "/models")), "data")
    found = [entry for entry in entries if _member(entry, "id") == call.model] if isinstance(entries, list) else []
    return _positive(found[0], "max_model_len") if found else None


def _prompt(call: _MeasuredCall) -> JsonValue:
    """Return a completion's prompt; of a list with one, that one."""
    prompt = call.body.get("prompt") if call.operation is Operation.COMPLETIONS else None
    return prompt[0] if isinstance(prompt, list) and len(prompt) == 1 and not _is_id(prompt[0]) else prompt


def _ids(call: _MeasuredCall) -> int | None:
    """Return the number of token ids of a completion's prompt; None where it is not made of them."""
    prompt = _prompt(call)
    return len(prompt) if isinstance(prompt, list) and all(map(_is_id, prompt)) else None


def _is_id(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _only_text(body: JsonObject) -> bool:
    """Return whether a chat's messages hold nothing but text: an image's placeholder has not as many tokens as the
    image."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return False
    contents = [_member(message, "content") for message in messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return all(_member(part, "type") == "text" for part in parts)


def _member(holder: JsonValue, name: str) -> JsonValue:
    return holder.get(name) if isinstance(holder, dict) else None


def _length(value: JsonValue) -> int | None:
    return len(value) if isinstance(value, list) else None


def _whole(holder: JsonValue, name: str) -> int | None:
    return count_of(_member(holder, name))


def _positive(holder: JsonValue, name: str) -> int | None:
    return _whole(holder, name) or None
