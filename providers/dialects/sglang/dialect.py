"""SGLang's own `/generate`.

It has no chat: the profile `sglang` uses the server's OpenAI route, which applies the model's template.

Sources: `sglang` 0.5.23 `api/v1/api_types.py`, `srt/entrypoints/http_server.py`.
"""

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.sglang.answer import SglangReader, decode_answer
from providers.dialects.sglang.fields import FIELDS, capabilities
from providers.dialects.shared.decode_stream import NativeStream
from providers.dialects.shared.errors import OpenAIErrors
from providers.dialects.shared.prompt import native_prompt
from providers.dialects.shared.request_body import RequestBody, finish_request, put_fields, put_unknown, raw_only
from providers.framing.parse_sse import SSEParser
from providers.target import Target
from providers.unified_request import Operation, TokenPrompt, UnifiedRequest

_PROTECTED = ("text", "input_ids", "input_embeds", "stream", "model", "sampling_params.n", "logprob_start_len")


class SglangDialect(OpenAIErrors):
    """The `Dialect` of SGLang's own `/generate`."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return raw_only(request, target, capabilities("logprobs" in request.params, target.profile.verifies))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        draft = RequestBody(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        key = "input_ids" if isinstance(request.prompt, TokenPrompt) else "text"
        draft.body[key] = native_prompt(target, draft.table, request.prompt)
        # Without the field the engine would apply its default of 128 tokens.
        draft.put("sampling_params.max_new_tokens", None)
        put_fields(draft, FIELDS)
        if request.stream:
            draft.body["stream"] = True
        return finish_request(draft, Operation.COMPLETIONS, "/generate", _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return NativeStream(SSEParser(), SglangReader(sent))
