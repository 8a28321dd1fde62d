"""Text Generation Inference's own endpoints: the outgoing request, and the door to its answers.

Never a chat: the templates are behind the server's OpenAI route, which the profile `tgi` speaks.

Sources: huggingface/text-generation-inference `docs/openapi.json`, `router/src`, January 2026; `text-generation` 0.7.0.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import orjson

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.native_fields import Draft, finished, put_fields, put_unknown, raw_only
from providers.dialects.native_stream import NativeStream
from providers.dialects.native_whole import WholeStream
from providers.dialects.openai_errors import classify
from providers.dialects.openai_prompt import IMAGE_MARKER, native_prompt
from providers.dialects.openai_read import loaded
from providers.dialects.tgi_answer import STREAM_PATH, WHOLE_PATH, TgiReader, decode_answer, is_stream
from providers.dialects.tgi_fields import ELSEWHERE, FIELDS, capabilities, echoes
from providers.failure import Failure, Refusal
from providers.sse import SSEParser
from providers.unified import JsonValue, Operation, UnifiedRequest, is_neutral

_PROTECTED = ("inputs", "stream", "model", "parameters.details", "parameters.best_of", "parameters.return_full_text")


class TgiDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return raw_only(request, target, capabilities("logprobs" in request.params, target.profile.verifies))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        draft = Draft(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        draft.body["inputs"] = _inputs(draft)
        path = STREAM_PATH
        if echoes(draft):
            if "logprobs" not in request.params:
                raise draft.unsupported("echo")
            path = WHOLE_PATH
            draft.put("parameters.decoder_input_details", True)
        # Without them an answer says neither why it ended nor how long it is.
        draft.put("parameters.details", True)
        draft.put("parameters.return_full_text", False)
        put_fields(draft, FIELDS, ELSEWHERE)
        return finished(draft, Operation.COMPLETIONS, path, _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        if is_stream(sent):
            return NativeStream(SSEParser(), TgiReader(sent))
        return WholeStream(partial(decode_answer, sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect. A gateway in front of a model that is being loaded says how long that takes."""
        failure = classify(sent.target.profile, status, headers, body)
        try:
            told = loaded(body)
        except orjson.JSONDecodeError:
            told = None
        wait = told.get("estimated_time") if isinstance(told, dict) else None
        if failure.retry_after is None and isinstance(wait, int | float) and 0 <= wait < float("inf"):
            return replace(failure, retry_after=float(wait))
        return failure


def _inputs(draft: Draft) -> JsonValue:
    """The prompt; images take the places of their marks in Markdown, which is how the engine finds them."""
    text = native_prompt(draft.target, draft.table, draft.request.prompt)
    if text == "":
        raise Refusal("prompt", f"{draft.target.name} does not take an empty prompt.", "invalid_value")
    images = draft.params.get("images", ())
    if is_neutral("images", images) or not isinstance(text, str):
        return text
    draft.emulated.append("images")
    first, *rest = text.split(IMAGE_MARKER)
    return first + "".join(f"![]({image}){piece}" for image, piece in zip(images[0], rest, strict=True))
