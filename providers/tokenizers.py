"""How engines count: what to ask about a call that is about to be made, and how the answers read.

Never asks anything itself, and never counts: an engine without a tokenizer of its own has no row here.

Sources: vLLM 0.33 `entrypoints/serve/tokenize`; SGLang 0.5 `serving_tokenize.py` and `http_server.py`; TGI's
`router/src/server.rs`; the llama.cpp server of xllamacpp 2026.10 (held by tests/e2e/test_engine_tokenizer.py);
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

from providers.dialects.gemini_models import model_path
from providers.dialects.vertex_host import placed
from providers.unified import JsonObject, JsonValue, Operation


@dataclass(frozen=True, slots=True)
class Question:
    """One request to the engine, made with the headers of the call it is about; `body` is empty for GET."""

    method: Literal["GET", "POST"]
    url: str
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Count:
    """Tokens of the prompt, and of prompt and answer together at most; None what the engine did not tell."""

    tokens: int | None = None
    window: int | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """The call to count: its JSON body, what it asks, and where the engine is; `root` has no `/v1`."""

    body: JsonObject
    operation: Operation
    base_url: str
    model: str

    @property
    def root(self) -> str:
        return self.base_url.removesuffix("/v1")


_Steps = Generator[Question, JsonValue, Count]


class Counting:
    """A conversation with one engine about one call.

    Ask what `next` gives and hand in each `answer`, until it gives None; then `count` is the result. An engine that
    answers with an error or with nonsense did not tell.
    """

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._question: Question | None = None
        self.count = Count()
        self._advance(None)

    def next(self) -> Question | None:
        """The question to ask now; the same one until it is answered."""
        return self._question

    def answer(self, status: int, body: bytes) -> None:
        """What the engine said to the question asked."""
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


Tokenizer = Callable[[JsonObject, Operation, str, str], Counting]
"""Begins to count: the call's JSON body with one prompt, its operation, the deployment's `base_url` and
`upstream_model`."""


def _tokenizer(steps: Callable[[_Call], _Steps]) -> Tokenizer:
    return lambda body, operation, base_url, model: Counting(steps(_Call(body, operation, base_url, model)))


# What templates read of a chat, besides its messages.
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


def _vllm(call: _Call) -> _Steps:
    """`/tokenize` tells both. Where there is nothing to tokenize the list of models tells the window."""
    tokens, body = _ids(call), _openai_question(call)
    if body is None:
        return Count(tokens, (yield from _listed_window(call)))
    answer = yield _post(call.root + "/tokenize", body)
    return Count(_whole(answer, "count"), _positive(answer, "max_model_len"))


def _sglang(call: _Call) -> _Steps:
    """`/tokenize` since 0.5, of chats later than of prompts. Its `max_model_len` is the tokenizer's own limit, often
    none at all; the list of models has the engine's."""
    tokens = _ids(call)
    if tokens is None and (body := _openai_question(call)) is not None:
        answer = yield _post(call.root + "/tokenize", body)
        tokens = _whole(answer, "count")
    return Count(tokens, (yield from _listed_window(call)))


def _llamacpp(call: _Call) -> _Steps:
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


def _tgi(call: _Call) -> _Steps:
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


def _anthropic(call: _Call) -> _Steps:
    """Counts images too, and free of charge; the vendor calls it an estimate. No answer has the window."""
    body: JsonObject = {"model": call.model, **_picked(call.body, _COUNTED)}
    answer = yield _post(call.root + "/v1/messages/count_tokens", body)
    return Count(_whole(answer, "input_tokens"))


def _anthropic_vertex(call: _Call) -> _Steps:
    """The same for all its models in one place, so that the model stands in the body. Not every location counts."""
    body: JsonObject = {"model": call.model, **_picked(call.body, ("anthropic_version", *_COUNTED))}
    answer = yield _post(placed(call.base_url) + "/publishers/anthropic/models/count-tokens:rawPredict", body)
    return Count(_whole(answer, "input_tokens"))


def _bedrock(call: _Call) -> _Steps:
    """Of what a conversation says, without the settings."""
    read = ("messages", "system", "toolConfig", "additionalModelRequestFields")
    return _counted_on_bedrock(call, {"converse": _picked(call.body, read)})


def _bedrock_anthropic(call: _Call) -> _Steps:
    """Of a whole body of InvokeModel, which the service has as bytes."""
    return _counted_on_bedrock(call, {"invokeModel": {"body": base64.b64encode(orjson.dumps(call.body)).decode()}})


_GEOGRAPHY = re.compile(r"^(?:us-gov|us|eu|apac|au|jp|ca|global)\.")
"""What ids of inference profiles begin with, before that of their model."""


def _counted_on_bedrock(call: _Call, given: JsonObject) -> _Steps:
    """Profiles are not counted for as a rule, but the models behind them are. ARNs hide theirs, and tell nothing."""
    tokens = None
    for model in dict.fromkeys((_GEOGRAPHY.sub("", call.model), call.model)):
        answer = yield _post(f"{call.base_url}/model/{quote(model, safe='')}/count-tokens", {"input": given})
        tokens = _whole(answer, "inputTokens")
        if tokens is not None:
            break
    return Count(tokens)


def _gemini(call: _Call) -> _Steps:
    """Of the whole call, which names its model once more. Prompt and answer have a window each."""
    path = model_path("/models/{model}", call.model)
    whole: JsonObject = {"model": path.removeprefix("/"), **call.body}
    answer = yield _post(f"{placed(call.base_url)}{path}:countTokens", {"generateContentRequest": whole})
    return Count(_whole(answer, "totalTokens"))


def _vertex(call: _Call) -> _Steps:
    """Of what the prompt is made of."""
    path = model_path("/publishers/google/models/{model}", call.model)
    body = _picked(call.body, ("contents", "systemInstruction", "tools", "generationConfig"))
    answer = yield _post(f"{placed(call.base_url)}{path}:countTokens", body)
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
"""The styles that a profile's `tokenizer` names."""


def _picked(body: JsonObject, names: Iterable[str]) -> JsonObject:
    return {name: body[name] for name in names if name in body}


def _post(url: str, body: JsonObject) -> Question:
    return Question("POST", url, orjson.dumps(body))


def _openai_question(call: _Call) -> JsonObject | None:
    """What vLLM and SGLang are asked about a call; None where its prompt is not only text, or not only the prompt is
    read."""
    if call.operation is Operation.CHAT:
        if not _only_text(call.body):
            return None
        return {"model": call.model, **_picked(call.body, _OF_CHAT)}
    text = _prompt(call)
    if not isinstance(text, str) or call.body.get("suffix"):
        return None
    return {"model": call.model, "prompt": text, "add_special_tokens": call.body.get("add_special_tokens", True)}


def _listed_window(call: _Call) -> Generator[Question, JsonValue, int | None]:
    """The window that the list of models has for the call's model."""
    entries = _member((yield Question("GET", call.base_url + "/models")), "data")
    found = [entry for entry in entries if _member(entry, "id") == call.model] if isinstance(entries, list) else []
    return _positive(found[0], "max_model_len") if found else None


def _prompt(call: _Call) -> JsonValue:
    """A completion's prompt; one in a list stands for itself."""
    prompt = call.body.get("prompt") if call.operation is Operation.COMPLETIONS else None
    return prompt[0] if isinstance(prompt, list) and len(prompt) == 1 and not _is_id(prompt[0]) else prompt


def _ids(call: _Call) -> int | None:
    """How many token ids a completion's prompt has, where it is made of them."""
    prompt = _prompt(call)
    return len(prompt) if isinstance(prompt, list) and all(map(_is_id, prompt)) else None


def _is_id(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _only_text(body: JsonObject) -> bool:
    """Whether a chat's messages hold nothing but text: what an image takes is not what its mark takes."""
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
    value = _member(holder, name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _positive(holder: JsonValue, name: str) -> int | None:
    return _whole(holder, name) or None
