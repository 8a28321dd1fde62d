"""Rankings of documents by a query: what a client asks for, and what every wire form's answer is read into."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from providers.completion import Usage
from providers.json_types import JsonObject, JsonValue
from providers.tasks.embeddings import Truncate


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """One client request for a ranking, parsed once.

    `objects` holds the documents, by their place, that had members beside their text, which no vendor is sent. `top_n`
    is how many of the best documents the answer has (None = all), `return_documents` whether with their texts.
    `truncate` is as in EmbeddingsRequest, the other members as in UnifiedRequest.
    """

    model: str
    query: str
    documents: tuple[str, ...]
    top_n: int | None = None
    return_documents: bool = False
    max_tokens_per_doc: int | None = None
    truncate: Truncate = "none"
    user: str | None = None
    unknown: Mapping[str, JsonValue] | None = None
    timeout: float | None = None
    extra_params: Mapping[str, JsonValue] | None = None
    extra_headers: Mapping[str, str] | None = None
    objects: Mapping[int, JsonObject] = field(default_factory=dict)

    @property
    def passes_unknown(self) -> bool:
        """Whether members that the gateway does not know go along, which may change the form of the answer."""
        return bool(self.extra_params or self.extra_headers or self.unknown)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document's place in the request's list, and its score: the higher, the nearer to the query."""

    index: int
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The documents of an answer, best first. `usage` is None where the vendor reported none; `details` and `own` are
    as in Embeddings, and `own` holds `meta`, in which are the search units that some vendors bill."""

    results: Sequence[Ranked]
    usage: Usage | None = None
    details: JsonObject = field(default_factory=dict)
    own: JsonObject = field(default_factory=dict)
