"""The client's request to rank documents by a query, and the ranking that every wire form reads from its response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from providers.completion import Usage
from providers.json_types import JsonObject, JsonValue
from providers.tasks.embeddings import Truncate


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """A client's request for a ranking.

    `objects` holds, by index, the documents that had fields besides their text; these fields are sent to no vendor.
    `top_n` is the number of best documents to return, `None` for all. `return_documents` says whether their texts are
    returned. `truncate` is as in EmbeddingsRequest, the other fields are as in UnifiedRequest.
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
        """Whether fields that the gateway does not know are sent too, which may change the form of the response."""
        return bool(self.extra_params or self.extra_headers or self.unknown)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document's index in the request's list, and its score. A higher score means more relevant to the query."""

    index: int
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The documents of a response, best first.

    `usage` is `None` if the vendor reported no usage. `details` and `own` are as in Embeddings. `own` includes `meta`,
    which holds the search units that some vendors bill.
    """

    results: Sequence[Ranked]
    usage: Usage | None = None
    details: JsonObject = field(default_factory=dict)
    own: JsonObject = field(default_factory=dict)
