"""llama.cpp's own endpoints: `/completion`, and `/infill` to fill in the middle.

They have no chat: the profile `llamacpp` uses the server's OpenAI routes, which apply the model's template.

Sources: llama.cpp `tools/server/README.md`; the server of xllamacpp 2026.10, tried in November 2026.
"""

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.llamacpp.answer import LlamaReader, decode_answer
from providers.dialects.llamacpp.fields import FIELDS, capabilities
from providers.dialects.shared.decode_stream import NativeStream
from providers.dialects.shared.errors import OpenAIErrors
from providers.dialects.shared.prompt import native_prompt
from providers.dialects.shared.request_body import RequestBody, finish_request, put_fields, put_unknown, raw_only
from providers.framing.parse_sse import SSEParser
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest

_PROTECTED = ("model", "stream", "prompt", "input_prefix", "input_suffix", "n", "n_cmpl")


class LlamaCppDialect(OpenAIErrors):
    """The `Dialect` of llama.cpp's own endpoints."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return raw_only(request, target, capabilities(target.profile, bool(request.params.get("suffix"))))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        draft = RequestBody(request, target, self.capabilities(request, target), {"model": target.upstream_model})
        put_unknown(draft)
        prompt, suffix = native_prompt(target, draft.table, request.prompt), request.params.get("suffix")
        if suffix:
            draft.body.update({"input_prefix": prompt, "input_suffix": suffix})
        else:
            draft.body["prompt"] = prompt
        put_fields(draft, FIELDS, {"suffix"})
        if request.stream:
            draft.body["stream"] = True
        return finish_request(draft, Operation.COMPLETIONS, "/infill" if suffix else "/completion", _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return NativeStream(SSEParser(), LlamaReader(sent))
