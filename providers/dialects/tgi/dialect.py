"""Text Generation Inference's own endpoints.

They have no chat: the profile `tgi` uses the server's OpenAI route, which applies the model's template.

Sources: huggingface/text-generation-inference `docs/openapi.json`, `router/src`, January 2026; `text-generation` 0.7.0.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.shared.decode_stream import NativeStream, SingleResponseStream
from providers.dialects.shared.errors import classify, parse_error_object
from providers.dialects.shared.prompt import IMAGE_MARKER, native_prompt
from providers.dialects.shared.request_body import RequestBody, finish_request, put_fields, put_unknown, raw_only
from providers.dialects.tgi.answer import STREAM_PATH, WHOLE_PATH, TgiReader, decode_answer, is_stream
from providers.dialects.tgi.fields import ELSEWHERE, FIELDS, capabilities, echoes
from providers.failure import Failure, Refusal
from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonValue
from providers.request_fields import is_neutral
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest

_PROTECTED = ("inputs", "stream", "model", "parameters.details", "parameters.best_of", "parameters.return_full_text")


class TgiDialect:
    """The `Dialect` of TGI's own endpoints."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return raw_only(request, target, capabilities("logprobs" in request.params, target.profile.verifies))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        draft = RequestBody(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        draft.body["inputs"] = _inputs(draft)
        path = STREAM_PATH
        if echoes(draft):
            if "logprobs" not in request.params:
                raise draft.unsupported("echo")
            path = WHOLE_PATH
            draft.put("parameters.decoder_input_details", True)
        # Without details a response has neither a finish reason nor token counts.
        draft.put("parameters.details", True)
        draft.put("parameters.return_full_text", False)
        put_fields(draft, FIELDS, ELSEWHERE)
        return finish_request(draft, Operation.COMPLETIONS, path, _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        if is_stream(sent):
            return NativeStream(SSEParser(), TgiReader(sent))
        return SingleResponseStream(partial(decode_answer, sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        failure = classify(sent.target.profile, status, headers, body)
        wait = parse_error_object(body).get("estimated_time")
        if failure.retry_after is None and isinstance(wait, int | float) and 0 <= wait < float("inf"):
            return replace(failure, retry_after=float(wait))
        return failure


def _inputs(draft: RequestBody) -> JsonValue:
    """Return the prompt with Markdown images instead of the image markers, as the engine requires."""
    text = native_prompt(draft.target, draft.table, draft.request.prompt)
    if text == "":
        raise Refusal("prompt", f"{draft.target.name} does not take an empty prompt.", "invalid_value")
    images = draft.params.get("images", ())
    if is_neutral("images", images) or not isinstance(text, str):
        return text
    draft.emulated.append("images")
    first, *rest = text.split(IMAGE_MARKER)
    return first + "".join(f"![]({image}){text_part}" for image, text_part in zip(images[0], rest, strict=True))
