"""The client's request for embeddings, and the vectors that every wire form reads from its responses."""

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
"""The numbers of one vector: doubles (`d`) if the vendor wrote numbers, single floats (`f`) if it wrote base64."""


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest:
    """A client's request for embeddings.

    `inputs` are texts, or lists of token ids. `base64` is true if the client wants the vectors as the base64 of
    little-endian single floats instead of numbers. `input_type` is the use of the inputs, in the gateway's or the
    vendor's words. `truncate` says which end of a too long input may be cut. The other fields are as in UnifiedRequest.
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
        """Whether fields that the gateway does not know are sent too, which may change the form of the response."""
        return bool(self.extra_params or self.extra_headers or self.unknown)

    @property
    def tokenized(self) -> bool:
        """Whether the inputs are token ids."""
        return not isinstance(self.inputs[0], str)

    @property
    def texts(self) -> Texts:
        """The inputs, which must be texts. Raises TypeError for token ids."""
        if self.tokenized:
            raise TypeError("the inputs are token ids")
        return cast(Texts, self.inputs)


def as_json(inputs: Texts | TokenLists) -> JsonValue:
    """Return inputs as a JSON value without copying them: orjson writes tuples as lists."""
    return cast(JsonValue, inputs)


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """The vectors of a request or of one call, in the order of its inputs. All have the same length.

    `usage` is `None` only if the vendor sent no usage. `details` holds the other fields of the usage. `own` holds the
    vendor's own fields of the response.
    """

    vectors: Sequence[Vector]
    usage: Usage | None = None
    details: JsonObject = field(default_factory=dict)
    own: JsonObject = field(default_factory=dict)

    @property
    def numbers(self) -> int:
        """The total number of numbers in all vectors."""
        return sum([len(vector) for vector in self.vectors])
