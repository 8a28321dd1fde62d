"""Splits the inputs of an embeddings request into calls by the vendor's limits, and joins the responses.

Sizes in tokens are estimates. The estimates for splitting texts are too high on purpose: if a call is too large, the
vendor refuses all of it, but if it is smaller than necessary, this costs little.
"""

from collections.abc import Iterator, Sequence

from providers.completion import Usage
from providers.dialects.shared.read_json import malformed
from providers.profile import TaskWire
from providers.tasks.embeddings import Embeddings, EmbeddingsRequest, Texts, TokenLists
from providers.tasks.own_members import sum_details
from providers.tasks.read_vectors import MOST_NUMBERS

MOST_LISTED = 128
"""The most inputs of one call if the vendor returns vectors as JSON numbers. 128 vectors of 3,072 numbers are 5 MB;
parsing them blocks the event loop for 40 ms. Vectors in base64 cost a tenth of that, and are requested from every
vendor that supports base64."""

_LATE_CHUNKING = "late_chunking"
"""Jina's field that makes the vector of each input depend on the other inputs ("Embeddings API", November 2026)."""

_BYTES_PER_TOKEN = 4
"""The UTF-8 bytes per token in estimates of usage. This is roughly the figure of common vocabularies for English
prose."""

_FEWEST_BYTES_IN_ASCII, _FEWEST_BYTES = 3, 2
"""The fewest bytes per token in checks of limits: of a text in ASCII, and of any other text."""


def split_inputs(request: EmbeddingsRequest, wire: TaskWire, most: int) -> tuple[Texts | TokenLists, ...]:
    """Return the inputs of each call, in order. A call has at most `most` inputs and observes the vendor's limits. An
    input that alone exceeds the token limit is a call of its own, which the vendor accepts or refuses."""
    if request.unknown and request.unknown.get(_LATE_CHUNKING) is True:
        return (request.inputs,)
    limit = min(most, wire.most or most)
    if wire.most_tokens is None:
        return tuple(request.inputs[at : at + limit] for at in range(0, len(request.inputs), limit))
    return tuple(_split_by_tokens(request.inputs, limit, wire.most_tokens))


def _split_by_tokens(inputs: Texts | TokenLists, most: int, most_tokens: int) -> Iterator[Texts | TokenLists]:
    begin = tokens_so_far = 0
    for at, size in enumerate(map(_most_tokens_of, inputs)):
        if at > begin and (at - begin == most or tokens_so_far + size > most_tokens):
            yield inputs[begin:at]
            begin, tokens_so_far = at, 0
        tokens_so_far += size
    yield inputs[begin:]


def _most_tokens_of(each: str | tuple[int, ...]) -> int:
    """Return an upper estimate of an input's tokens."""
    if not isinstance(each, str):
        return len(each)
    if each.isascii():
        return len(each) // _FEWEST_BYTES_IN_ASCII + 1
    return len(each.encode(errors="replace")) // _FEWEST_BYTES + 1


def join_parts(request: EmbeddingsRequest, sizes: Sequence[int], parts: Sequence[Embeddings]) -> Embeddings:
    """Join the results of all calls. The usage is the sum of the vendor's counts, with estimates for calls without a
    count. The vendor's own fields are returned only for a single call, because several calls may have different values.

    Raises UpstreamError(MALFORMED) if a call has another number of vectors than inputs, and if the lengths of vectors
    differ.
    """
    if sum([part.numbers for part in parts]) > MOST_NUMBERS:
        raise malformed("has more numbers than are read")
    for size, part in zip(sizes, parts, strict=True):
        if len(part.vectors) != size:
            raise malformed(f"has {len(part.vectors)} vectors for {size} inputs")
    vectors = tuple(vector for part in parts for vector in part.vectors)
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1:
        raise malformed("has vectors of different lengths")
    if request.dimensions not in (None, *lengths):
        raise malformed(f"has vectors of another length than the requested {request.dimensions}")
    details = parts[0].details if len(parts) == 1 else sum_details([part.details for part in parts])
    return Embeddings(vectors, _summed(request, sizes, parts), details, parts[0].own if len(parts) == 1 else {})


def _summed(request: EmbeddingsRequest, sizes: Sequence[int], parts: Sequence[Embeddings]) -> Usage:
    tokens, begin, estimated = 0, 0, False
    for size, part in zip(sizes, parts, strict=True):
        if part.usage is None:
            tokens += sum([estimated_tokens(each) for each in request.inputs[begin : begin + size]])
            estimated = True
        else:
            tokens += part.usage.prompt_tokens
        begin += size
    return Usage(tokens, 0, estimated=estimated)


def estimated_tokens(each: str | tuple[int, ...]) -> int:
    """Return an estimate of the tokens of an input."""
    if not isinstance(each, str):
        return len(each)
    size = len(each) if each.isascii() else len(each.encode(errors="replace"))
    return -(-size // _BYTES_PER_TOKEN)
