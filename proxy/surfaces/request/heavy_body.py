"""Decides from a random sample of a body's bytes whether its parsing, checking and translation take so long that they
must be done off the event loop.

Counting one mark in every byte of a 300 KB body takes 0.1 ms, a third of the time of parsing it. A sample of windows at
random positions takes 30 us for all marks. A client cannot know the positions, so it cannot hide dense JSON between
them.
"""

import os
from typing import Final

from providers.json_types import opens_more

INLINE_PARSE_BYTES: Final = 384 * 1024
"""Size in bytes of the largest body that is parsed on the event loop."""

MANY_OBJECTS: Final = 1500
"""The number of objects, or of lists, in the densest body that is parsed on the event loop. Each takes 1 to 3 us to
check and translate, and 7 us within a schema."""

MANY_TEXTS: Final = 2400
"""The number of names and texts in the densest body that is parsed on the event loop. A name without a rule takes 2 us;
a document in a list to be ranked takes 1 us."""

MANY_COMMAS: Final = 8000
"""The number of commas in the densest body that is parsed on the event loop. A value between two commas takes up to 0.5
us."""

SAMPLE_BYTES: Final = 16 * 1024
"""Size in bytes of a sample. An estimate of 1,500 objects in 300 KB is within a quarter of the true number in 95 of 100
samples."""

_WINDOWS: Final = 64
_WINDOW_BYTES: Final = SAMPLE_BYTES // _WINDOWS
_COUNTED_IN_FULL: Final = 2 * SAMPLE_BYTES

_FEWEST_BYTES: Final = 2 * MANY_OBJECTS
"""Size in bytes of the smallest body that can have more objects or lists than MANY_OBJECTS."""

_FEWEST_BYTES_OF_TEXTS: Final = 3 * MANY_TEXTS
"""Size in bytes of the smallest body that can have more texts than MANY_TEXTS: two quotation marks and a comma each. A
body of this size has fewer commas than MANY_COMMAS."""


def is_heavy(body: bytes) -> bool:
    """Return whether the work on a body may block the event loop for more than a few ms. This check takes at most 50
    us."""
    size = len(body)
    if size <= _FEWEST_BYTES:
        return size > INLINE_PARSE_BYTES
    if size > INLINE_PARSE_BYTES:
        return True
    if size <= _FEWEST_BYTES_OF_TEXTS:
        return opens_more(body, MANY_OBJECTS)
    return _is_dense(body)


def _is_dense(body: bytes) -> bool:
    sample = body if len(body) <= _COUNTED_IN_FULL else _sample(body)
    share = len(sample) / len(body)
    if max(sample.count(b"{"), sample.count(b"[")) > MANY_OBJECTS * share:
        return True
    commas = sample.count(b",")
    if commas > MANY_COMMAS * share:
        return True
    # A name or text has two quotation marks, and a comma unless it is the first. Prose may have many quotation marks or
    # many commas, but not many of both.
    return commas > MANY_TEXTS * share and sample.count(b'"') > 2 * MANY_TEXTS * share


def _sample(body: bytes) -> bytes:
    """Return windows of a body, one at a random position in each of its equal parts."""
    step = len(body) // _WINDOWS
    slack = step - _WINDOW_BYTES
    return b"".join(
        [
            body[(start := part * step + (slack * random_byte >> 8)) : start + _WINDOW_BYTES]
            for part, random_byte in enumerate(os.urandom(_WINDOWS))
        ]
    )
