"""Estimates from a random sample of a body's bytes whether parsing, checking and translating it takes so long that it
must be done off the event loop.

Counting every byte of a 300 KB body takes 0.1 ms for each mark, a third of the time of parsing it. A sample of windows
at random places takes 30 us for all marks. A client cannot know the places, so it cannot hide dense JSON between them.
"""

import os
from typing import Final

from providers.json_types import opens_more

INLINE_PARSE_BYTES: Final = 384 * 1024
"""Size in bytes of the largest body that is parsed on the event loop."""

MANY_OBJECTS: Final = 1500
"""Objects, or lists, of the densest body that is parsed on the event loop. Each takes 1 to 3 us to check and
translate, in a schema 7 us."""

MANY_TEXTS: Final = 2400
"""Names and texts of such a body. A name that no rule knows takes 2 us, a document of a list to rank 1 us."""

MANY_COMMAS: Final = 8000
"""Commas of such a body. A value between two commas takes up to 0.5 us."""

SAMPLE_BYTES: Final = 16 * 1024
"""Bytes of a sample. The estimate of 1,500 objects in 300 KB is within a quarter in 95 of 100 samples."""

_WINDOWS: Final = 64
_WINDOW_BYTES: Final = SAMPLE_BYTES // _WINDOWS
_COUNTED_WHOLE: Final = 2 * SAMPLE_BYTES

_FEWEST_BYTES: Final = 2 * MANY_OBJECTS
"""Size in bytes of the smallest body that can have more objects or lists."""

_FEWEST_BYTES_OF_TEXTS: Final = 3 * MANY_TEXTS
"""Size in bytes of the smallest body that can have more texts: two quotation marks and a comma each. It can have fewer
commas than MANY_COMMAS."""


def is_heavy(body: bytes) -> bool:
    """Return whether the work on a body may block the event loop for more than a few ms. Takes at most 50 us."""
    size = len(body)
    if size <= _FEWEST_BYTES:
        return size > INLINE_PARSE_BYTES
    if size > INLINE_PARSE_BYTES:
        return True
    if size <= _FEWEST_BYTES_OF_TEXTS:
        return opens_more(body, MANY_OBJECTS)
    return _is_dense(body)


def _is_dense(body: bytes) -> bool:
    sample = body if len(body) <= _COUNTED_WHOLE else _sample(body)
    share = len(sample) / len(body)
    if max(sample.count(b"{"), sample.count(b"[")) > MANY_OBJECTS * share:
        return True
    commas = sample.count(b",")
    if commas > MANY_COMMAS * share:
        return True
    # A name or text has two quotation marks, and a comma if it is not the first. Prose has either.
    return commas > MANY_TEXTS * share and sample.count(b'"') > 2 * MANY_TEXTS * share


def _sample(body: bytes) -> bytes:
    """Return windows of a body, each at a random place of its own part of the body."""
    step = len(body) // _WINDOWS
    room = step - _WINDOW_BYTES
    return b"".join(
        [
            body[(start := part * step + (room * place >> 8)) : start + _WINDOW_BYTES]
            for part, place in enumerate(os.urandom(_WINDOWS))
        ]
    )
