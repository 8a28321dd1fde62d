"""Bedrock's InvokeModel for the models that go on with a raw prompt, each in its maker's own body.

Never a conversation: Converse makes a model's template of those, and nothing here does.

Sources: as `bedrock_families`; botocore 1.44.5 service model `bedrock-runtime`, operations `InvokeModel` and
`InvokeModelWithResponseStream`.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache

from providers.capabilities import (
    FAN_OUT,
    NATIVE,
    PREFIXED,
    RESENT,
    SCANNED,
    Capabilities,
    Cell,
    compiled,
    refused,
)
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.bedrock import model_path
from providers.dialects.bedrock_errors import classify_answer
from providers.dialects.bedrock_families import Family, family_of
from providers.dialects.bedrock_invoke_answer import InvokeStream, decode_stream, decode_whole
from providers.dialects.native_fields import (
    WINDOW,
    Draft,
    Put,
    at_window,
    bounded,
    finished,
    listed,
    put_fields,
    put_unknown,
    raw_only,
    unless_neutral,
)
from providers.dialects.openai_prompt import native_prompt
from providers.failure import Failure, Refusal
from providers.unified import MAX_STOPS, ChatPrompt, Operation, UnifiedRequest

KEEP = "include_stop_str_in_output"

_PROTECTED = ("num_generations", "stream")


class BedrockInvokeDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return raw_only(request, target, _capabilities(_family(target)))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        table, family = self.capabilities(request, target), _family(target)
        draft = Draft(request, target, table, {})
        put_unknown(draft)
        if isinstance(request.prompt, ChatPrompt):
            raise TypeError("a conversation is no prompt")
        prompt = native_prompt(target, table, request.prompt)
        if not prompt:
            raise Refusal("prompt", f"{target.name} does not take an empty prompt.", "invalid_value")
        draft.body = {family.prompt: prompt, **family.body}
        put_fields(draft, _writers(family))
        streamed = request.stream or family.streams_only
        path = model_path(target, invoke_action(streamed))
        sent = finished(draft, Operation.COMPLETIONS, path, (family.prompt, *_PROTECTED))
        return replace(sent, headers=invoke_headers(sent, streamed))

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        family = _family(sent.target)
        return (decode_stream if family.streams_only else decode_whole)(family, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return InvokeStream(_family(sent.target))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify_answer(status, headers, body)


_WHOLE = {"accept": "application/json"}
_STREAMED = {"x-amzn-bedrock-accept": "application/json"}


def invoke_action(streamed: bool) -> str:
    """The end of the path."""
    return "invoke-with-response-stream" if streamed else "invoke"


def invoke_headers(sent: UpstreamRequest, streamed: bool) -> Mapping[str, str]:
    """The call's own headers, and what the model's answer shall be: in a stream that is about the frames' contents."""
    own = {name.lower(): value for name, value in sent.headers.items()}
    return {**(_STREAMED if streamed else _WHOLE), **own}


def _family(target: Target) -> Family:
    family = _family_of(target.upstream_model, target.model)
    if family is None:
        because = "its name is of no model that takes raw prompts; the profile 'bedrock' asks the others by chat"
        raise Refusal("prompt", f"'prompt' is not supported by {target.name}: {because}.")
    return family


@lru_cache(maxsize=4096)
def _family_of(*names: str) -> Family | None:
    return family_of(*names)


@cache
def _writers(family: Family) -> Mapping[str, Put]:
    """A writer for each field that the maker knows."""
    known: dict[str, Put] = {WINDOW: at_window}
    for name, setting in family.settings.items():
        put = bounded(name, setting.path, setting.low, setting.high)
        known[name] = unless_neutral(name, put) if name == "top_k" else put
    return known if family.stops is None else {**known, "stop": listed(family.stops)}


_TEXT_ONLY = refused("it takes prompts as text only")
_ONE_PROMPT: Mapping[str, Cell] = {
    "messages": refused("it takes raw prompts only; the profile 'bedrock' takes conversations"),
    "prompt": NATIVE,
    "prompt.batch": FAN_OUT,
    "prompt.tokens": _TEXT_ONLY,
    "prompt.token_batch": _TEXT_ONLY,
    "n": FAN_OUT,
    "best_of": refused("it has no log probabilities to choose by"),
    "echo": PREFIXED,
    "echo.logprobs": refused("it does not tell the log probabilities of a prompt"),
    KEEP: SCANNED,
    f"{WINDOW}.truncate": RESENT,
    f"{WINDOW}.error": NATIVE,
    "unknown": refused("the vendor refuses fields it does not know"),
}


@cache
def _capabilities(family: Family) -> Capabilities:
    own = NATIVE if family.stops else SCANNED
    stops = {"stop": own, "stop.blank": own, "stop.many": own if family.most_stops >= MAX_STOPS else SCANNED}
    cells = compiled(_writers(family), {**_ONE_PROMPT, **stops})
    watched = frozenset({"n", "best_of", "echo", "stop"})
    return Capabilities(cells, most_stops=family.most_stops, watched=watched)
