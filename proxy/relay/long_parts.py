"""Decides which parts of a stream take long to write, so that their frames are written in a thread."""

from typing import Final

from providers.completion import Chunk, ContentLogprobs, Logprobs, TextRun
from providers.emulation.estimate_missing_usage import size_written
from providers.emulation.join_extras import size_of_extras

LONG_PART: Final = 256 * 1024
"""The most bytes of an event, or of a response at its end, whose frames are written on the event loop."""

TOKEN_WEIGHT: Final = 4096
"""The number of characters that a token with up to 20 log probabilities counts as, because it takes as long to
write."""


def weight_of_logprobs(logprobs: Logprobs) -> int:
    """Return the number of characters that log probabilities count as."""
    tokens = logprobs.content if isinstance(logprobs, ContentLogprobs) else logprobs.tokens
    return TOKEN_WEIGHT * len(tokens)


def is_long(part: Chunk | TextRun, before: int) -> bool:
    """Return whether writing the frames of a part may take more than a few ms. `before` is the number of bytes of the
    response before the part."""
    if isinstance(part, TextRun):
        return part.size > LONG_PART
    if part.finish_reason is not None and before > LONG_PART:
        return True
    weight = size_written(part) if part.reasoning or part.tool_calls else len(part.text)
    if part.logprobs is not None:
        weight += weight_of_logprobs(part.logprobs)
    if part.extras is not None:
        weight += size_of_extras(part.extras)
    return weight > LONG_PART
