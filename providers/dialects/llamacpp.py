"""llama.cpp's own endpoints: `/completion`, and `/infill` to fill in the middle; the door to their answers.

Never a chat: the server's templates are behind its OpenAI routes, which the profile `llamacpp` speaks.

Sources: llama.cpp `tools/server/README.md`; the server of xllamacpp 2026.10, tried in November 2026.
"""

from collections.abc import Mapping

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.llamacpp_answer import LlamaReader, decode_answer
from providers.dialects.llamacpp_fields import FIELDS, capabilities
from providers.dialects.native_fields import Draft, finished, put_fields, put_unknown, raw_only
from providers.dialects.native_stream import NativeStream
from providers.dialects.openai_errors import classify
from providers.dialects.openai_prompt import native_prompt
from providers.failure import Failure
from providers.sse import SSEParser
from providers.unified import Operation, UnifiedRequest

_PROTECTED = ("model", "stream", "prompt", "input_prefix", "input_suffix", "n", "n_cmpl")


class LlamaCppDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return raw_only(request, target, capabilities(target.profile, bool(request.params.get("suffix"))))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        draft = Draft(request, target, self.capabilities(request, target), {"model": target.upstream_model})
        put_unknown(draft)
        prompt, suffix = native_prompt(target, draft.table, request.prompt), request.params.get("suffix")
        if suffix:
            draft.body.update({"input_prefix": prompt, "input_suffix": suffix})
        else:
            draft.body["prompt"] = prompt
        put_fields(draft, FIELDS, {"suffix"})
        if request.stream:
            draft.body["stream"] = True
        return finished(draft, Operation.COMPLETIONS, "/infill" if suffix else "/completion", _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return NativeStream(SSEParser(), LlamaReader(sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify(sent.target.profile, status, headers, body)
