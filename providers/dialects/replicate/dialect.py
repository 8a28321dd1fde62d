"""The dialect of Replicate, whose predictions are created by one call that waits for the result.

Predictions are not polled. The vendor's streams are not used, because their URL comes only in the first response.
Therefore a client's stream is the complete text in one chunk. A prediction that takes longer than a call may wait is a
timeout. A model is named `owner/name`, `owner/name:version` or `deployments/owner/name`. Each model has its own inputs;
the inputs written here are common to language models.

Sources: replicate 1.0.7; "HTTP API" reference (predictions, models, deployments), November 2026.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from urllib.parse import quote

from providers.capabilities import SCANNED, UNSCORED, Capabilities, Cell, compiled, refused
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.replicate.answer import decode_answer
from providers.dialects.shared.decode_stream import SingleResponseStream
from providers.dialects.shared.errors import OpenAIErrors
from providers.dialects.shared.prompt import ONE_RAW_PROMPT, prompt_text
from providers.dialects.shared.request_body import (
    REFUSES_OVERFLOW,
    FieldWriter,
    RequestBody,
    bounded,
    check_limited_window,
    finish_request,
    plain,
    put_fields,
    put_unknown,
    raw_only,
    unless_neutral,
)
from providers.json_types import JsonObject
from providers.request_fields import STOP_STRING, WINDOW
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest

MOST_WAIT_SECONDS = 60
"""The seconds that a call waits for its prediction. This is the vendor's maximum."""

# A name with another number of segments would be another path of the vendor's API, and clients may choose the name.
_NAME = re.compile(r"(?:deployments/|(?!deployments/))[^/]+/[^/]+")

_PROTECTED = ("version", "stream", "webhook", "input.prompt")

_FIELDS: Mapping[str, FieldWriter] = {
    "max_tokens": bounded("max_tokens", "input.max_tokens", 1, None),
    "temperature": plain("input.temperature"),
    "top_p": plain("input.top_p"),
    "top_k": unless_neutral("top_k", plain("input.top_k")),
    "presence_penalty": unless_neutral("presence_penalty", plain("input.presence_penalty")),
    "frequency_penalty": unless_neutral("frequency_penalty", plain("input.frequency_penalty")),
    WINDOW: check_limited_window,
}
_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "best_of": UNSCORED,
    # The vendor's field is one string with commas between the stop strings, so stop strings with commas would be split.
    **dict.fromkeys(("stop", "stop.blank", "stop.many", STOP_STRING), SCANNED),
    **REFUSES_OVERFLOW,
    "unknown": refused("a model's own inputs go into 'inference_extra_params'"),
}


@cache
def _capabilities() -> Capabilities:
    cells = compiled(_FIELDS, _CELLS)
    return Capabilities(cells, most_stops=0, watched=frozenset({"n", "echo", "stop", STOP_STRING}))


class ReplicateDialect(OpenAIErrors):
    """The `Dialect` of Replicate's predictions."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return raw_only(request, target, _capabilities())

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        draft = RequestBody(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        path, draft.body = _prediction_path(draft, target.upstream_model)
        draft.put("input.prompt", prompt_text(draft))
        put_fields(draft, _FIELDS)
        sent = finish_request(draft, Operation.COMPLETIONS, path, _PROTECTED)
        own_headers = {name: value for name, value in sent.headers.items() if name.lower() != "prefer"}
        return replace(sent, headers={**own_headers, "prefer": f"wait={MOST_WAIT_SECONDS}"})

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return SingleResponseStream(partial(decode_answer, sent))


def _prediction_path(draft: RequestBody, model: str) -> tuple[str, JsonObject]:
    """Return the path of a model's predictions, and the fields of the body that name the model if the path does not.

    Raises Refusal for an invalid model name.
    """
    name, _, version = model.partition(":")
    if version:
        return "/v1/predictions", {"version": version}
    if not _NAME.fullmatch(name):
        raise draft.invalid("model", "must be owner/name, owner/name:version or deployments/owner/name")
    prefix = "" if name.startswith("deployments/") else "models/"
    return f"/v1/{prefix}{quote(name, safe='/')}/predictions", {}
