"""Leaves the oldest turns of a conversation out if it does not fit, for clients that request it. Pure.

Source: OpenAI OpenAPI 2.3.0 `truncation: auto`, which leaves items out from the beginning of the conversation, November
2026. Instructions stay, and only whole turns are left out, so that no tool result remains without its call.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import orjson

from providers.adaptation.instructions import behind_instructions
from providers.context_overflow import read_overflow
from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, TranslationLosses, UnifiedRequest

MOST_TRIES: Final = 4
"""The most times that a conversation is shortened for one request. If half is cut each time, a sixteenth is left."""

UNKNOWN_SHARE: Final = 0.5
"""The share of a conversation that stays if the refusal does not report how much it is too long."""

_ROOM: Final = 0.9
"""The share of the window that is filled if the refusal reports the window's size. It is below 1 because lengths are
compared in bytes, not tokens."""

_LEAST: Final = 0.02
NO_LOSSES: Final = TranslationLosses({}, ())


def shortened(request: UnifiedRequest, refusal: str) -> UnifiedRequest | None:
    """Return the request without its oldest turns, after the vendor's message `refusal`; `None` if no turn can be left
    out.

    Its native form stays unchanged: a vendor that takes that form leaves turns out by itself.
    """
    if not isinstance(request.prompt, ChatPrompt):
        return None
    messages = latest_turns(request.prompt.messages, kept_share(refusal))
    if messages is None:
        return None
    losses = request.losses or NO_LOSSES
    left_out = tuple(dict.fromkeys((*losses.left_out, "input")))
    return replace(request, prompt=ChatPrompt(messages), losses=replace(losses, left_out=left_out))


def kept_share(refusal: str) -> float:
    """Return the share of a conversation that may fit, according to the refusal."""
    sizes = read_overflow(refusal, {})
    if sizes is None or not sizes.window or not sizes.prompt or sizes.prompt <= sizes.window:
        return UNKNOWN_SHARE
    return max(_LEAST, _ROOM * sizes.window / sizes.prompt)


def latest_turns(messages: Sequence[JsonObject], share: float) -> tuple[JsonObject, ...] | None:
    """Return the instructions and as many of the latest turns as fit into `share` of the bytes, but at least one turn;
    `None` if this would leave nothing out."""
    first = behind_instructions(messages)
    begins = [at for at in range(first + 1, len(messages)) if messages[at].get("role") == "user"]
    if not begins:
        return None
    sizes = [len(orjson.dumps(message)) for message in messages]
    room = share * sum(sizes) - sum(sizes[:first])
    begin, size, end = begins[-1], 0, len(messages)
    for at in reversed(begins):
        size += sum(sizes[at:end])
        end = at
        if size > room:
            break
        begin = at
    return (*messages[:first], *messages[begin:])
