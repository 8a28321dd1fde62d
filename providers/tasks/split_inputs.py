"""Splits the inputs of an embeddings request into calls by the vendor's limits, and joins the answers again.

Sizes in tokens are estimates, on the safe side for texts: a call that is too large is refused whole, one that could
have been larger costs little.
"""

from collections.abc import Iterator, Sequence

from providers.completion import Usage
from providers.dialects.shared.read_json import malformed
from providers.profile import TaskWire
from providers.tasks.embeddings import Embeddings, EmbeddingsRequest, Texts, TokenLists
from providers.tasks.own_members import sum_details
from providers.tasks.read_vectors import MOST_NUMBERS

MOST_LISTED = 128
"""Inputs of one call whose vectors come as JSON numbers: 128 vectors of 3,072 numbers are 5 MB, which are parsed in 40
ms, and nothing else runs meanwhile. In base64, which is asked for wherever a vendor has it, they cost a tenth."""

_JOINED = "late_chunking"
"""Jina's switch by which the vector of each input depends on the others ("Embeddings API", November 2026)."""

_BYTES_PER_TOKEN = 4
"""Of usage that is estimated: UTF-8 bytes per token of common vocabularies in English prose, roughly."""

_FEWEST_ASCII, _FEWEST = 3, 2
"""Bytes per token where a limit must not be exceeded: of ASCII alone, and of other texts."""


def split_inputs(request: EmbeddingsRequest, wire: TaskWire, most: int) -> tuple[Texts | TokenLists, ...]:
    """Return the inputs of each call, in order: at most `most` in one, and the vendor's limits. An input that exceeds
    the limit of tokens by itself is one call, for the vendor to answer for."""
    if request.unknown and request.unknown.get(_JOINED) is True:
        return (request.inputs,)
    limit = min(most, wire.most or most)
    if wire.most_tokens is None:
        return tuple(request.inputs[at : at + limit] for at in range(0, len(request.inputs), limit))
    return tuple(_within(request.inputs, limit, wire.most_tokens))


def _within(inputs: Texts | TokenLists, most: int, most_tokens: int) -> Iterator[Texts | TokenLists]:
    begin = held = 0
    for at, size in enumerate(map(_at_most, inputs)):
        if at > begin and (at - begin == most or held + size > most_tokens):
            yield inputs[begin:at]
            begin, held = at, 0
        held += size
    yield inputs[begin:]


def _at_most(each: str | tuple[int, ...]) -> int:
    """Return more tokens than an input is likely to have."""
    if not isinstance(each, str):
        return len(each)
    if each.isascii():
        return len(each) // _FEWEST_ASCII + 1
    return len(each.encode(errors="replace")) // _FEWEST + 1


def join_parts(request: EmbeddingsRequest, sizes: Sequence[int], parts: Sequence[Embeddings]) -> Embeddings:
    """Return the answers of all calls as one, with a usage: the vendor's, estimated for calls without one. The vendor's
    own members are those of one call alone; several need not agree.

    Raises UpstreamError(MALFORMED) where a call has another number of vectors than inputs, and where lengths differ.
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
        raise malformed(f"has vectors of another length than the {request.dimensions} that were asked for")
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
