"""Context windows: the sizes in an error, the next limit to use, and whether a prompt is certain to fit.

This module does not count tokens as a model does; `providers.dialects.vendor_token_counts` calls the engine for that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from unicodedata import is_normalized

import orjson

from providers.context_overflow_patterns import CATCH_ALL, NOT_ABOUT_SIZE, SIGNATURES, About, Signature
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Params, Prompt, TextPrompt, TokenPrompt

MAX_FITTING_CALLS = 3
"""The most calls of one request, including the first."""

MARGIN_TOKENS = 16
"""The number of tokens of the window that stay unused if the vendor's count of the prompt is an estimate."""

MAX_TEXT = 8192
"""The most characters of an error that are read, here and by the dialects. Some vendors repeat the request in an error,
and the patterns need not be linear beyond this length."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """The sizes that an error reports, all in tokens; `None` for a size that it does not report.

    `window` limits prompt and response together; a limit of only one of them is no `window`. `prompt` is the size of
    the prompt. `exact` is true if it was measured. An estimate is not exact, and a lower bound or a number of
    characters is not put into `prompt`. `requested` is the limit that was requested for the response. `total` is the
    sum of prompt and limit if the vendor does not report them separately. `output_cap` is the most that may be
    requested for a response. `prompt_alone` is true if the prompt is too long for any response.
    """

    window: int | None = None
    prompt: int | None = None
    requested: int | None = None
    exact: bool = False
    output_cap: int | None = None
    total: int | None = None
    prompt_alone: bool = False

    @property
    def of_answer(self) -> bool:
        """Whether the error is about the most tokens of a response, independent of the window."""
        return self.output_cap is not None and self.window is None


def read_overflow(text: str, members: Mapping[str, JsonValue]) -> Overflow | None:
    """Return the sizes that an error reports; `None` if the error is about something else.

    `text` is the message, which may contain quoted JSON. `members` is the error object; its own numbers (llama.cpp's
    `n_prompt_tokens` and `n_ctx`) take precedence over the message. Must not be called for a 429, which is never about
    the size of one request.
    """
    window, prompt = _positive_integer(members.get("n_ctx")), _positive_integer(members.get("n_prompt_tokens"))
    if window is not None and prompt is not None:
        return Overflow(window, prompt, exact=True, prompt_alone=True)
    text = text[:MAX_TEXT]
    if NOT_ABOUT_SIZE.search(text):
        return None
    for signature in (*SIGNATURES, *CATCH_ALL):
        found = signature.pattern.search(text)
        if found is not None:
            return _overflow_of_match(signature, found.groupdict())
    return None


def _overflow_of_match(signature: Signature, groups: Mapping[str, str | None]) -> Overflow:
    lower_bound = groups.get("LB") is not None
    numbers = {name: int(text.replace(",", "")) for name, text in groups.items() if text and name != "LB"}
    window, prompt = numbers.get("W"), numbers.get("P")
    if prompt is not None:
        prompt += numbers.get("P2", 0)
    elif window is not None and "D" in numbers:
        prompt = window + numbers["D"]
    alone = signature.about in (About.PROMPT, About.INPUT) or _fills_window(prompt, window)
    cap = numbers.get("CAP", numbers["END"] - 1 if "END" in numbers else None)
    measured = None if lower_bound else prompt
    return Overflow(
        window=window,
        prompt=measured,
        requested=numbers.get("C"),
        exact=measured is not None and not signature.approximate,
        output_cap=window if signature.about is About.ANSWER else cap,
        total=numbers.get("T"),
        prompt_alone=alone,
    )


def _fills_window(prompt: int | None, window: int | None) -> bool:
    """Return whether a prompt fills the window. A lower bound that fills it proves this too."""
    return prompt is not None and window is not None and prompt >= window


def _positive_integer(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def next_limit(limit: int, overflow: Overflow, calls: int) -> int | None:
    """Return the `max_tokens` for the next call; `None` if no further call is worth making. `calls` calls were made,
    and the last one used `limit` and failed.

    The result is at least 1 and less than `limit`. If the error is about the most tokens of a response, it is that
    number. If the prompt was measured, it is the rest of the window, less `MARGIN_TOKENS` if the prompt was estimated.
    Otherwise it is half of `limit`. A lower bound is ignored: vLLM derives it from the limit, so following it would
    lower the limit by one token per call.
    """
    if calls >= MAX_FITTING_CALLS or overflow.prompt_alone:
        return None
    fitting = _fitting_limit(limit, overflow)
    return fitting if 1 <= fitting < limit else None


def _fitting_limit(limit: int, overflow: Overflow) -> int:
    if overflow.output_cap is not None:
        return overflow.output_cap
    if overflow.window is None:
        return limit // 2
    half = min(limit, overflow.window) // 2
    if overflow.prompt is not None:
        room = overflow.window - overflow.prompt - (0 if overflow.exact else MARGIN_TOKENS)
    elif overflow.total is not None:
        room = limit - (overflow.total - overflow.window)
    else:
        return half
    # If the numbers left room for the limit, the vendor would not have refused the call.
    return room if room < limit else half


SPECIAL_TOKENS = 8
"""The most special tokens around a text or a sequence: begin, end, a prefix space."""

MESSAGE_TOKENS = 16
"""The most tokens that a chat template adds around a message: its role and marks."""

TEMPLATE_TOKENS = 1024
"""The most tokens that a chat template adds by itself: a default system prompt, today's date, how tools are called.
Like the other figures here it is an allowance, and generous, because operators write templates. The bytes of a prompt
are a true bound."""

JSON_FACTOR = 4
"""How many times longer a template may write a tool than compact JSON, through indentation and escapes."""

NFC_GROWTH = 3
"""How many times longer a text may become in UTF-8 through normalisation form C, which some tokenizers apply (Unicode's
normalisation FAQ)."""

_PROMPT_PARAMS = ("tools", "response_format")
_TEXT_PARTS = frozenset({"text", "input_text"})


def most_prompt_tokens(prompt: Prompt, params: Params) -> int | None:
    """Return an upper bound of a prompt's tokens; `None` if it holds more than text. If there are several prompts, the
    longest counts.

    Byte-level tokenizers make at most one token of a UTF-8 byte. Other tokenizers make at most one of a character, or
    of a byte that they do not know. The bound includes the tokens that a chat template adds, also for text prompts,
    because they may be sent as a message. Unknown fields may also add to a prompt; they are not counted.
    """
    if any(params.get("images", ())) or "audio" in params:
        return None
    match prompt:
        case TokenPrompt(sequences):
            return max(map(len, sequences), default=0) + SPECIAL_TOKENS
        case TextPrompt(texts):
            own = (
                max(map(_most_tokens_of_text, texts), default=0)
                + _most_tokens_of_text(params.get("suffix", ""))
                + MESSAGE_TOKENS
            )
            return own + _most_tokens_of_params(params)
        case ChatPrompt(messages):
            sizes = [_most_tokens_of_message(message) for message in messages]
            known = [size for size in sizes if size is not None]
            return sum(known) + _most_tokens_of_params(params) if len(known) == len(sizes) else None


def _most_tokens_of_params(params: Params) -> int:
    return (
        sum(_most_tokens_of_json(value) for name in _PROMPT_PARAMS if (value := params.get(name)))
        + TEMPLATE_TOKENS
        + SPECIAL_TOKENS
    )


def _most_tokens_of_message(message: JsonObject) -> int | None:
    most = MESSAGE_TOKENS
    for name, value in message.items():
        if value is None:
            continue
        if isinstance(value, str):
            most += _most_tokens_of_text(value)
        elif name == "content" and isinstance(value, list):
            texts = [part.get("text") for part in value if isinstance(part, dict) and part.get("type") in _TEXT_PARTS]
            if len(texts) < len(value):
                return None
            most += sum(_most_tokens_of_text(text) for text in texts if isinstance(text, str))
        elif name == "audio":
            return None
        else:
            most += _most_tokens_of_json(value)
    return most


def _most_tokens_of_text(text: str) -> int:
    if text.isascii():
        return len(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    return size if is_normalized("NFC", text) else NFC_GROWTH * size


def _most_tokens_of_json(value: object) -> int:
    return JSON_FACTOR * _most_tokens_of_text(orjson.dumps(value).decode())


def fits(most_prompt: int | None, limit: int, window: int | None) -> bool:
    """Return whether a prompt of at most `most_prompt` tokens is certain to fit together with its response. Return
    False if a size is unknown."""
    return most_prompt is not None and window is not None and most_prompt + limit <= window
