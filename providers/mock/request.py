"""Strict parser of requests to the mock: a wrong type, an unknown field or a field that the mock cannot honour is a
400.

Sampling settings are accepted and have no effect, because nothing is sampled. Fields and ranges: OpenAI OpenAPI 2.3.0,
with vLLM 0.10's `guided_*`, `ignore_eos` and `include_stop_str_in_output`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from providers.json_types import JsonValue
from providers.mock import constraints
from providers.mock.errors import MockError, bad_request, overflow
from providers.mock.fields import Fields
from providers.mock.script import MAX_MESSAGES, ScriptedTurn, next_turn
from providers.mock.vocabulary import tokenize, word

MAX_TEXT = 48 * 1024
"""The maximum number of characters of a prompt that is split into tokens, and of bytes of a request with a constraint.
Larger ones overflow the context window. The mock runs on the gateway's own event loop, and a prompt of punctuation
marks alone takes it 10 ms."""

MAX_BODY = 256 * 1024
"""The maximum size of a request in bytes. Coding agents begin with 80 kB, of which most are tools."""

SCRIPT = "script"
"""The word in a model's name that makes the mock play a script."""

MAX_CHOICES = 128
MAX_STOPS = 64
MAX_PROMPTS = 2048
_COMPLETIONS, _CHAT = "/completions", "/chat/completions"
_WITHOUT_EFFECT = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "typical_p", "repetition_penalty", "presence_penalty"}
    | {"frequency_penalty", "mirostat_lr", "mirostat_target", "logit_bias", "user", "metadata", "service_tier"}
    | {"prompt_cache_key", "safety_identifier", "reasoning_effort", "prediction", "store"}
)
_COMMON_FIELDS = _WITHOUT_EFFECT | frozenset(
    {"model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "stop", "include_stop_str_in_output"}
    | {"n", "seed", "logprobs", "top_logprobs", "ignore_eos", "response_format"}
    | {"guided_json", "guided_choice", "guided_regex", "guided_grammar"}
)
KNOWN_FIELDS = {
    _COMPLETIONS: _COMMON_FIELDS | {"prompt", "suffix", "echo", "best_of"},
    _CHAT: _COMMON_FIELDS | {"messages", "tools", "tool_choice", "parallel_tool_calls", "modalities"},
}
"""The fields of a request by its path. Other fields are refused."""


@dataclass(frozen=True, slots=True)
class MockPrompt:
    """One prompt: its tokens, the text that determines the response, and the text that the model `echo` repeats.

    `estimate` is the estimated number of tokens of a prompt that was not split into tokens.
    """

    tokens: tuple[str, ...]
    text: str
    repeated: str
    estimate: int = 0

    @property
    def size(self) -> int:
        """The number of tokens."""
        return self.estimate or len(self.tokens)


@dataclass(frozen=True, slots=True)
class MockLogprobs:
    """The number of alternatives that each position lists. `legacy` selects arrays in place of a `content` list."""

    top: int
    legacy: bool


@dataclass(frozen=True, slots=True)
class MockRequest:
    """A checked request.

    `options` are the only texts that satisfy its constraint. `tool` is the function to call, and the text is then its
    arguments. `turn` is the response that a script sets.
    """

    chat: bool
    model: str
    prompts: tuple[MockPrompt, ...]
    limit: int | None
    n: int
    best_of: int
    stop: tuple[str, ...]
    keep_stop: bool
    echo: bool
    suffix: str
    logprobs: MockLogprobs | None
    seed: int
    ignore_eos: bool
    stream: bool
    include_usage: bool
    options: tuple[str, ...] | None
    tool: str | None
    turn: ScriptedTurn | None


def parse(path: str, data: bytes) -> MockRequest:
    """Return the request to a path, which is relative to the base URL. Raises MockError."""
    if path not in KNOWN_FIELDS:
        raise MockError(404, f"Invalid URL (POST {path})")
    if len(data) > MAX_BODY:
        raise overflow(len(data))
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise bad_request(None, "We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict):
        raise bad_request(None, "The body of your request must be a JSON object.")
    for name in body:
        if name not in KNOWN_FIELDS[path]:
            raise bad_request(name, f"Unrecognized request argument supplied: {name}")
    fields = Fields(body)
    model = fields.text("model")
    if not model:
        raise bad_request("model", "you must provide a model parameter")
    if len(data) > MAX_TEXT and (path != _CHAT or constraints.is_constrained(fields)):
        raise overflow(len(data))
    turn = _scripted(fields) if path == _CHAT and SCRIPT in model.split("+") else None
    return _request(path == _CHAT, model, fields, turn)


def _scripted(fields: Fields) -> ScriptedTurn | None:
    """Return the turn that the conversation's script sets. A constraint on the text takes precedence over a script."""
    if constraints.options(fields) is not None:
        return None
    return next_turn(fields.any("messages"), constraints.function_names(fields))


def _request(chat: bool, model: str, fields: Fields, turn: ScriptedTurn | None) -> MockRequest:
    n = fields.integer("n", 1, MAX_CHOICES) or 1
    best_of = fields.integer("best_of", 0, 20) or n
    stream, options = fields.flag("stream"), fields.object("stream_options")
    if best_of < n or (stream and best_of > n):
        raise bad_request("best_of", "'best_of' must not be less than 'n', nor greater than it when streaming.")
    if not stream and fields.any("stream_options") is not None:
        raise bad_request("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    if fields.any("modalities") not in (None, ["text"]):
        raise bad_request("modalities", "Only the modality 'text' is supported.")
    limit = fields.integer("max_tokens", 0, 10**6)
    newer = fields.integer("max_completion_tokens", 0, 10**6)
    if len(fields.strings("stop")) > MAX_STOPS:
        raise bad_request("stop", f"Invalid 'stop': array too long. Expected an array with maximum length {MAX_STOPS}.")
    tool, arguments = constraints.tool(fields) if turn is None else (None, "")
    return MockRequest(
        chat=chat,
        model=model,
        prompts=(_conversation(fields.any("messages"), turn),) if chat else _prompts(fields.any("prompt")),
        limit=limit if newer is None else newer,
        n=n,
        best_of=best_of,
        stop=fields.strings("stop"),
        keep_stop=fields.flag("include_stop_str_in_output"),
        echo=fields.flag("echo"),
        suffix=fields.text("suffix"),
        logprobs=_logprobs(fields),
        seed=fields.integer("seed", -(2**63), 2**63 - 1) or 0,
        ignore_eos=fields.flag("ignore_eos"),
        stream=stream,
        include_usage=options.get("include_usage") is True,
        options=(arguments,) if tool else constraints.options(fields),
        tool=tool,
        turn=turn,
    )


def _prompts(value: JsonValue) -> tuple[MockPrompt, ...]:
    """Return the prompts of a text, texts, token ids, or lists of token ids."""
    if isinstance(value, str):
        return (_text_prompt(value),)
    if isinstance(value, list) and value:
        if len(value) > MAX_PROMPTS and not isinstance(value[0], int):
            raise bad_request("prompt", f"'prompt' must not have more than {MAX_PROMPTS} prompts.")
        if all(isinstance(item, str) for item in value):
            return tuple([_text_prompt(str(item)) for item in value])
        if _is_ids(value):
            return (_id_prompt(value),)
        if all(isinstance(item, list) and _is_ids(item) for item in value):
            return tuple([_id_prompt(item) for item in value if isinstance(item, list)])
    raise bad_request("prompt", "'prompt' must be a string, strings, token ids or lists of token ids, and not empty.")


def _is_ids(value: Sequence[JsonValue]) -> bool:
    return bool(value) and all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value)


def _text_prompt(text: str) -> MockPrompt:
    return MockPrompt(tuple(tokenize(text)), text, text)


def _id_prompt(ids: Sequence[JsonValue]) -> MockPrompt:
    tokens = tuple([word(item) for item in ids if isinstance(item, int)])
    text = "".join(tokens)
    return MockPrompt(tokens, text, text)


def _conversation(value: JsonValue, turn: ScriptedTurn | None) -> MockPrompt:
    """Read a conversation. All messages determine the response. The text to repeat is the last user message, or else
    the last message. If a script is played, the number of tokens is only estimated."""
    if not isinstance(value, list) or not value:
        raise bad_request("messages", "'messages' must be a non-empty list.")
    if len(value) > MAX_MESSAGES:
        raise bad_request("messages", f"'messages' must not have more than {MAX_MESSAGES} messages.")
    tokens: list[str] = []
    turns: list[tuple[str, str]] = []
    size = 0
    for message in value:
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(role, str):
            raise bad_request("messages", "Each of 'messages' must be an object with a 'role'.")
        text = _content(message.get("content"))
        size += len(text)
        if turn is None:
            if size > MAX_TEXT:
                raise overflow(size)
            tokens += tokenize(text)
        turns.append((role, text))
    users = [text for role, text in turns if role == "user"]
    conversation_text = "\n".join([f"{role}: {text}" for role, text in turns])
    estimate = 0 if turn is None else len(conversation_text) // 4
    return MockPrompt(tuple(tokens), conversation_text, (users or [turns[-1][1]])[-1], estimate)


def _content(content: JsonValue) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise bad_request("messages", "'content' must be a string or a list of parts.")
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join([text for text in texts if isinstance(text, str)])


def _logprobs(fields: Fields) -> MockLogprobs | None:
    wanted, top = fields.any("logprobs"), fields.integer("top_logprobs", 0, 20)
    if wanted is None or wanted is False:
        if top:
            raise bad_request("top_logprobs", "'logprobs' must be true for 'top_logprobs'.")
        return None
    if wanted is True:
        return MockLogprobs(top or 0, legacy=False)
    return MockLogprobs(fields.integer("logprobs", 0, 5) or 0, legacy=True)
