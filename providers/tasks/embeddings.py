"""Embeddings: what a client asks for, and what every wire form's answer is read into."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from providers.completion import Usage
from providers.json_types import JsonObject, JsonValue

Texts = tuple[str, ...]
TokenLists = tuple[tuple[int, ...], ...]
Truncate = Literal["none", "start", "end"]

Vector: TypeAlias = "array[float]"
"""The numbers of one vector: doubles (`d`) as a vendor wrote them, or single floats (`f`) out of base64."""


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest:
    """One client request for vectors, parsed once.

    `inputs` are texts, or lists of token ids. `base64` says that the client wants the vectors as the base64 of
    little-endian single floats, not as numbers. `input_type` says what the inputs are for, in our words or in the
    vendor's own; `truncate` which end of an input that is too long may be left out. The other members are as in
    UnifiedRequest.
    """

    model: str
    inputs: Texts | TokenLists
    base64: bool = False
    dimensions: int | None = None
    input_type: str | None = None
    truncate: Truncate = "none"
    user: str | None = None
    unknown: Mapping[str, JsonValue] | None = None
    timeout: float | None = None
    extra_params: Mapping[str, JsonValue] | None = None
    extra_headers: Mapping[str, str] | None = None

    @property
    def passes_unknown(self) -> bool:
        """Whether members that the gateway does not know go along, which may change the form of the answer."""
        return bool(self.extra_params or self.extra_headers or self.unknown)

    @property
    def tokenized(self) -> bool:
        """Whether the inputs are token ids."""
        return not isinstance(self.inputs[0], str)

    @property
    def texts(self) -> Texts:
        """The inputs, where they are texts. Raises TypeError for token ids."""
        if self.tokenized:
            raise TypeError("the inputs are token ids")
        return cast(Texts, self.inputs)


def as_json(inputs: Texts | TokenLists) -> JsonValue:
    """Return inputs for a body; orjson writes tuples as lists, without a copy."""
    return cast(JsonValue, inputs)


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """The vectors of a request or of one call, in the order of its inputs; all have the same length.

    `usage` is None only where the vendor sent none; `details` holds its other members. `own` holds the vendor's own
    members of the answer.
    """

    vectors: Sequence[Vector]
    usage: Usage | None = None
    details: JsonObject = field(default_factory=dict)
    own: JsonObject = field(default_factory=dict)

    @property
    def numbers(self) -> int:
        """How many numbers all vectors hold together."""
        return sum([len(vector) for vector in self.vectors])
