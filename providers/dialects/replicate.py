"""Replicate: a prediction that is waited for; the outgoing request, the door to its answer, and what fields there are.

Never a prediction that is asked for again: an answer is the answer to one call here, and a stream has an address of its
own that the vendor tells only in the first answer. So a client's stream is the whole answer in one piece, and what
takes longer than the vendor lets a call wait is a timeout.

A model is `owner/name`, `owner/name:version`, or `deployments/owner/name`. Its inputs are its own; those written here
are what its language models have in common.

Sources: replicate 1.0.7; "HTTP API" reference (predictions, models, deployments), November 2026.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from urllib.parse import quote

from providers.capabilities import NATIVE, RESENT, SCANNED, Capabilities, Cell, compiled, refused
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.native_fields import (
    WINDOW,
    Draft,
    Put,
    at_window,
    bounded,
    finished,
    plain,
    put_fields,
    put_unknown,
    raw_only,
    unless_neutral,
)
from providers.dialects.native_raw import KEEP, ONE_RAW_PROMPT, UNSCORED, raw_text
from providers.dialects.native_whole import WholeStream
from providers.dialects.openai_errors import classify
from providers.dialects.replicate_answer import decode_answer
from providers.failure import Failure
from providers.unified import JsonObject, Operation, UnifiedRequest

WAIT = 60
"""Seconds that a call may wait for its prediction; the vendor's most."""

# Any other number of segments would be another path of the vendor's API, and clients may choose the name.
_NAME = re.compile(r"(?:deployments/|(?!deployments/))[^/]+/[^/]+")

_PROTECTED = ("version", "stream", "webhook", "input.prompt")

_FIELDS: Mapping[str, Put] = {
    "max_tokens": bounded("max_tokens", "input.max_tokens", 1, None),
    "temperature": plain("input.temperature"),
    "top_p": plain("input.top_p"),
    "top_k": unless_neutral("top_k", plain("input.top_k")),
    "presence_penalty": unless_neutral("presence_penalty", plain("input.presence_penalty")),
    "frequency_penalty": unless_neutral("frequency_penalty", plain("input.frequency_penalty")),
    WINDOW: at_window,
}
_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "best_of": UNSCORED,
    # Its own are one string with commas between, in which no comma can be said.
    **dict.fromkeys(("stop", "stop.blank", "stop.many", KEEP), SCANNED),
    f"{WINDOW}.truncate": RESENT,
    f"{WINDOW}.error": NATIVE,
    "unknown": refused("a model's own inputs go into 'inference_extra_params'"),
}


@cache
def _capabilities() -> Capabilities:
    cells = compiled(_FIELDS, _CELLS)
    return Capabilities(cells, most_stops=0, watched=frozenset({"n", "echo", "stop", KEEP}))


class ReplicateDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return raw_only(request, target, _capabilities())

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        draft = Draft(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        path, draft.body = _addressed(draft, target.upstream_model)
        draft.put("input.prompt", raw_text(draft))
        put_fields(draft, _FIELDS)
        sent = finished(draft, Operation.COMPLETIONS, path, _PROTECTED)
        own = {name: value for name, value in sent.headers.items() if name.lower() != "prefer"}
        return replace(sent, headers={**own, "prefer": f"wait={WAIT}"})

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return WholeStream(partial(decode_answer, sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify(sent.target.profile, status, headers, body)


def _addressed(draft: Draft, model: str) -> tuple[str, JsonObject]:
    """The path of a model's predictions, and the members that name it where the path does not. Raises Refusal."""
    name, _, version = model.partition(":")
    if version:
        return "/v1/predictions", {"version": version}
    if not _NAME.fullmatch(name):
        raise draft.invalid("model", "must be owner/name, owner/name:version or deployments/owner/name")
    place = "" if name.startswith("deployments/") else "models/"
    return f"/v1/{place}{quote(name, safe='/')}/predictions", {}
