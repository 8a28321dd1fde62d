"""Prompt, answer and window: what an error says of them, which limit to try next, and what is sure to fit.

Never counts tokens as a model does (`providers.tokenizers` asks the engine), and never asks anything itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from unicodedata import is_normalized

import orjson

from providers.context_signatures import CATCH_ALL, NOT_ABOUT_SIZE, SIGNATURES, About, Signature
from providers.unified import ChatPrompt, JsonObject, JsonValue, Params, Prompt, TextPrompt, TokenPrompt

MAX_TRIES = 3
"""Calls in all for one request, the first included."""

MARGIN = 16
"""Tokens kept free where the vendor's count of the prompt is an estimate."""

MAX_TEXT = 8192
"""Characters of an error that are looked at, here and by the dialects; some vendors repeat the request in it, and no
pattern over hostile text has to be linear beyond that."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """What an error says of sizes, all in tokens; None where it says nothing.

    `window` holds prompt and answer together; a limit that holds for one of them alone is never put there. `prompt` is
    the prompt's size, and `exact` says that it was measured: an estimate is not exact, and a lower bound or a count of
    characters is no `prompt` at all. `requested` is what was asked for the answer, `total` both together where the
    vendor does not tell them apart. `output_cap` is the most that an answer may be asked to have, `prompt_alone` says
    that the prompt is too long whatever is asked for the answer.
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
        """Whether the error is about the most tokens of an answer, which no window changes."""
        return self.output_cap is not None and self.window is None


def read_overflow(text: str, members: Mapping[str, JsonValue]) -> Overflow | None:
    """What an error says of sizes; None when it is about something else.

    `text` is the message, with JSON quoted in it or not; `members` is the error object, whose own numbers (llama.cpp's
    `n_prompt_tokens` and `n_ctx`) come before words. A 429 is the caller's to leave out: it is never about the request.
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
    """Whether a prompt fills the window; a lower bound that does proves it too."""
    return prompt is not None and window is not None and prompt >= window


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def next_limit(limit: int, overflow: Overflow, tries: int) -> int | None:
    """The `max_tokens` to try after `tries` calls, the last of which asked for `limit` and failed; None: give up.

    Always at least 1 and less than `limit`: the most that an answer may have, where the error is about that; what fits
    where the prompt was measured, less `MARGIN` where it was estimated; half otherwise. A lower bound counts as
    nothing said: vLLM makes it from the limit, so that obeying it would lower the limit by one token a call.
    """
    if tries >= MAX_TRIES or overflow.prompt_alone:
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
    # By numbers that leave room for the limit it would not have been refused.
    return room if room < limit else half


SPECIALS = 8
"""Tokens that may stand around a text or a sequence: begin, end, a prefix space."""

PER_MESSAGE = 16
"""Tokens that a chat template puts around a message: its role and marks."""

TEMPLATE = 1024
"""Tokens that a chat template may add by itself: a system prompt nobody wrote, today's date, how tools are called. Like
the figures around it an allowance, generous because templates are anybody's text; the bytes of a prompt are a bound."""

JSON_FACTOR = 4
"""How much longer a template may write a tool than compact JSON: indentation and escapes."""

NFC_GROWTH = 3
"""How much longer in UTF-8 a text may become by normalisation form C, in which some tokenizers read it (Unicode's
normalisation FAQ)."""

_IN_PROMPT = ("tools", "response_format")
_TEXT_PARTS = frozenset({"text", "input_text"})


def most_prompt_tokens(prompt: Prompt, params: Params) -> int | None:
    """Tokens that a prompt does not exceed (of several, the longest one); None where it holds more than text.

    Byte-level tokenizers make at most one token of a UTF-8 byte, the others at most one of a character or of a byte
    that they do not know. What a chat template adds is allowed for, with text prompts too because they may be sent as
    a message. Members that the unified request does not know may add to a prompt as well and are not looked at here.
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
    """Whether a prompt of at most so many tokens is sure to fit with its answer; not where either is unknown."""
    return most_prompt is not None and window is not None and most_prompt + limit <= window
