"""Bedrock's InvokeModel for models that continue a raw prompt. The form of the body depends on the model's maker.

Conversations are sent to Converse, which applies the model's template.

Sources: the sources of `invoke_models`; botocore 1.44.5 service model `bedrock-runtime`, operations `InvokeModel` and
`InvokeModelWithResponseStream`.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache

from providers.capabilities import NATIVE, SCANNED, UNSCORED, Capabilities, Cell, compiled, refused
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.bedrock.converse import model_path
from providers.dialects.bedrock.invoke_answer import InvokeStream, decode_stream, decode_whole
from providers.dialects.bedrock.invoke_models import InvokeFamily, family_of
from providers.dialects.platforms.aws_errors import BEDROCK, classify_answer
from providers.dialects.shared.prompt import ONE_RAW_PROMPT, native_prompt
from providers.dialects.shared.request_body import (
    REFUSES_OVERFLOW,
    FieldWriter,
    RequestBody,
    bounded,
    check_limited_window,
    finish_request,
    listed,
    put_fields,
    put_unknown,
    raw_only,
    unless_neutral,
)
from providers.failure import Failure, Refusal
from providers.request_fields import STOP_STRING, WINDOW
from providers.target import Target
from providers.unified_request import MAX_STOPS, ChatPrompt, Operation, UnifiedRequest

_PROTECTED = ("num_generations", "stream")


class BedrockInvokeDialect:
    """The dialect of Bedrock's InvokeModel with raw prompts."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return raw_only(request, target, _capabilities(_family(target)))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        table, family = self.capabilities(request, target), _family(target)
        draft = RequestBody(request, target, table, {})
        put_unknown(draft)
        if isinstance(request.prompt, ChatPrompt):
            raise TypeError("a conversation is not a raw prompt")
        prompt = native_prompt(target, table, request.prompt)
        if not prompt:
            raise Refusal("prompt", f"{target.name} does not take an empty prompt.", "invalid_value")
        draft.body = {family.prompt: prompt, **family.body}
        put_fields(draft, _writers(family))
        streamed = request.stream or family.streams_only
        path = model_path(target, invoke_action(streamed))
        sent = finish_request(draft, Operation.COMPLETIONS, path, (family.prompt, *_PROTECTED))
        return replace(sent, headers=invoke_headers(sent, streamed))

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        family = _family(sent.target)
        return (decode_stream if family.streams_only else decode_whole)(family, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return InvokeStream(_family(sent.target))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return classify_answer(BEDROCK, status, headers, body)


_NON_STREAMING_HEADERS = {"accept": "application/json"}
_STREAMING_HEADERS = {"x-amzn-bedrock-accept": "application/json"}


def invoke_action(streamed: bool) -> str:
    """Return the last segment of the path, which requests a stream or a non-streaming response."""
    return "invoke-with-response-stream" if streamed else "invoke"


def invoke_headers(sent: UpstreamRequest, streamed: bool) -> Mapping[str, str]:
    """Return the call's own headers and the header that requests the type of the model's response. A stream needs a
    different header, because `accept` requests the type of the frames in a stream."""
    headers = {name.lower(): value for name, value in sent.headers.items()}
    return {**(_STREAMING_HEADERS if streamed else _NON_STREAMING_HEADERS), **headers}


def _family(target: Target) -> InvokeFamily:
    family = _family_of(*target.model_names)
    if family is None:
        because = "it is not a known model that accepts raw prompts; the profile 'bedrock' calls other models by chat"
        raise Refusal("prompt", f"'prompt' is not supported by {target.name}: {because}.")
    return family


@lru_cache(maxsize=4096)
def _family_of(*names: str) -> InvokeFamily | None:
    return family_of(*names)


@cache
def _writers(family: InvokeFamily) -> Mapping[str, FieldWriter]:
    """Return a writer for each field that the maker's models accept."""
    all_writers: dict[str, FieldWriter] = {WINDOW: check_limited_window}
    for name, setting in family.settings.items():
        put = bounded(name, setting.path, setting.low, setting.high)
        all_writers[name] = unless_neutral(name, put) if name == "top_k" else put
    return all_writers if family.stops is None else {**all_writers, "stop": listed(family.stops)}


_FIXED_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "messages": refused("it takes raw prompts only; the profile 'bedrock' takes conversations"),
    "best_of": UNSCORED,
    STOP_STRING: SCANNED,
    **REFUSES_OVERFLOW,
    "unknown": refused("the vendor refuses fields it does not know"),
}


@cache
def _capabilities(family: InvokeFamily) -> Capabilities:
    stop_cell = NATIVE if family.stops else SCANNED
    stops = {
        "stop": stop_cell,
        "stop.blank": stop_cell,
        "stop.many": stop_cell if family.most_stops >= MAX_STOPS else SCANNED,
    }
    cells = compiled(_writers(family), {**_FIXED_CELLS, **stops})
    watched = frozenset({"n", "best_of", "echo", "stop"})
    return Capabilities(cells, most_stops=family.most_stops, watched=watched)
