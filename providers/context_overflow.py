"""Context windows: sizes read from an error, the limit to use next, and which prompts are certain to fit.

Does not count tokens as a model does; `providers.dialects.vendor_token_counts` asks the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from unicodedata import is_normalized

import orjson

from providers.context_overflow_patterns import CATCH_ALL, NOT_ABOUT_SIZE, SIGNATURES, About, Signature
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Params, Prompt, TextPrompt, TokenPrompt

MAX_FITTING_CALLS = 3
"""The most calls of one request, the first included."""

MARGIN = 16
"""Tokens kept free where the vendor's count of the prompt is an estimate."""

MAX_TEXT = 8192
"""The most characters of an error that are read, here and by the dialects: some vendors repeat the request in it, and
the patterns need not be linear beyond that."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """The sizes that an error reports, all in tokens; None where it does not.

    `window` holds prompt and answer together; a limit of one of them alone is not put there. `prompt` is the prompt's
    size, and `exact` says that it was measured: an estimate is not exact, and a lower bound or a count of characters is
    no `prompt` at all. `requested` is the limit that was requested for the answer, `total` both together where the
    vendor does not report them apart. `output_cap` is the most that may be requested for an answer, `prompt_alone` says
    that the prompt is too long for any answer.
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
        """Whether the error is about the most tokens of an answer, whatever the window."""
        return self.output_cap is not None and self.window is None


def read_overflow(text: str, members: Mapping[str, JsonValue]) -> Overflow | None:
    """Return the sizes that an error reports; None when it is about something else.

    `text` is the message, with JSON quoted in it or not; `members` is the error object, whose own numbers (llama.cpp's
    `n_prompt_tokens` and `n_ctx`) come before the message. Not to be called for a 429, which is never about one
    request's size.
    """
    window, prompt = _whole(members.get("n_ctx")), _whole(members.get("n_prompt_tokens"))
    if window is not None and prompt is not None:
        return Overflow(window, prompt, exact=True, prompt_alone=True)
    text = text[:MAX_TEXT]
    if NOT_ABOUT_SIZE.search(text):
        return None
    for signature in (*SIGNATURES, *CATCH_ALL):
        found = signature.pattern.search(text)
        if found is not None:
            return _overflow(signature, found.groupdict())
    return None


def _overflow(signature: Signature, groups: Mapping[str, str | None]) -> Overflow:
    lower_bound = groups.get("LB") is not None
    said = {name: int(text.replace(",", "")) for name, text in groups.items() if text and name != "LB"}
    window, prompt = said.get("W"), said.get("P")
    if prompt is not None:
        prompt += said.get("P2", 0)
    elif window is not None and "D" in said:
        prompt = window + said["D"]
    alone = signature.about in (About.PROMPT, About.INPUT) or _beyond(prompt, window)
    cap = said.get("CAP", said["END"] - 1 if "END" in said else None)
    measured = None if lower_bound else prompt
    return Overflow(
        window=window,
        prompt=measured,
        requested=said.get("C"),
        exact=measured is not None and not signature.approximate,
        output_cap=window if signature.about is About.ANSWER else cap,
        total=said.get("T"),
        prompt_alone=alone,
    )


def _beyond(prompt: int | None, window: int | None) -> bool:
    """Return whether a prompt fills the window; a lower bound that does proves it too."""
    return prompt is not None and window is not None and prompt >= window


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def next_limit(limit: int, overflow: Overflow, calls: int) -> int | None:
    """Return the `max_tokens` for the next call after `calls` calls, the last of which used `limit` and failed; None to
    give up.

    Always at least 1 and less than `limit`: the most that an answer may have, where the error is about that; what fits
    where the prompt was measured, less `MARGIN` where it was estimated; half otherwise. A lower bound is ignored: vLLM
    derives it from the limit, so that following it would lower the limit by one token a call.
    """
    if calls >= MAX_FITTING_CALLS or overflow.prompt_alone:
        return None
    fitting = _fitting(limit, overflow)
    return fitting if 1 <= fitting < limit else None


def _fitting(limit: int, overflow: Overflow) -> int:
    if overflow.output_cap is not None:
        return overflow.output_cap
    if overflow.window is None:
        return limit // 2
    half = min(limit, overflow.window) // 2
    if overflow.prompt is not None:
        room = overflow.window - overflow.prompt - (0 if overflow.exact else MARGIN)
    elif overflow.total is not None:
        room = limit - (overflow.total - overflow.window)
    else:
        return half
    # With numbers that leave room for the limit, the vendor would not have refused the call.
    return room if room < limit else half


SPECIALS = 8
"""Special tokens around a text or a sequence: begin, end, a prefix space."""

PER_MESSAGE = 16
"""Tokens that a chat template puts around a message: its role and marks."""

TEMPLATE = 1024
"""Tokens that a chat template may add by itself: a default system prompt, today's date, how tools are called. An
allowance like the figures around it, and generous because operators write templates; the bytes of a prompt are a bound.
"""

JSON_FACTOR = 4
"""How much longer a template may write a tool than compact JSON, by indentation and escapes."""

NFC_GROWTH = 3
"""How much longer in UTF-8 a text may become by normalisation form C, which some tokenizers apply (Unicode's
normalisation FAQ)."""

_IN_PROMPT = ("tools", "response_format")
_TEXT_PARTS = frozenset({"text", "input_text"})


def most_prompt_tokens(prompt: Prompt, params: Params) -> int | None:
    """Return an upper bound of a prompt's tokens (of several, the longest one's); None where it holds more than text.

    Byte-level tokenizers make at most one token of a UTF-8 byte, the others at most one of a character or of a byte
    that they do not know. The bound includes what a chat template adds, with text prompts too because they may be sent
    as a message. Unknown members may add to a prompt as well and are not counted.
    """
    if any(params.get("images", ())) or "audio" in params:
        return None
    match prompt:
        case TokenPrompt(sequences):
            return max(map(len, sequences), default=0) + SPECIALS
        case TextPrompt(texts):
            own = max(map(_most_of_text, texts), default=0) + _most_of_text(params.get("suffix", "")) + PER_MESSAGE
            return own + _most_of_rest(params)
        case ChatPrompt(messages):
            sizes = [_most_of_message(message) for message in messages]
            known = [size for size in sizes if size is not None]
            return sum(known) + _most_of_rest(params) if len(known) == len(sizes) else None


def _most_of_rest(params: Params) -> int:
    return sum(_most_of_json(value) for name in _IN_PROMPT if (value := params.get(name))) + TEMPLATE + SPECIALS


def _most_of_message(message: JsonObject) -> int | None:
    most = PER_MESSAGE
    for name, value in message.items():
        if value is None:
            continue
        if isinstance(value, str):
            most += _most_of_text(value)
        elif name == "content" and isinstance(value, list):
            texts = [part.get("text") for part in value if isinstance(part, dict) and part.get("type") in _TEXT_PARTS]
            if len(texts) < len(value):
                return None
            most += sum(_most_of_text(text) for text in texts if isinstance(text, str))
        elif name == "audio":
            return None
        else:
            most += _most_of_json(value)
    return most


def _most_of_text(text: str) -> int:
    if text.isascii():
        return len(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    return size if is_normalized("NFC", text) else NFC_GROWTH * size


def _most_of_json(value: object) -> int:
    return JSON_FACTOR * _most_of_text(orjson.dumps(value).decode())


def fits(most_prompt: int | None, limit: int, window: int | None) -> bool:
    """Return whether a prompt of at most `most_prompt` tokens is certain to fit with its answer; False where a size is
    unknown."""
    return most_prompt is not None and window is not None and most_prompt + limit <= window
