"""SGLang's own `/generate`: the outgoing request, and the door to its answers.

Never a chat: the templates are behind the server's OpenAI route, which the profile `sglang` speaks.

Sources: `sglang` 0.5.23 `api/v1/api_types.py`, `srt/entrypoints/http_server.py`.
"""

from collections.abc import Mapping

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.native_fields import Draft, finished, put_fields, put_unknown, raw_only
from providers.dialects.native_stream import NativeStream
from providers.dialects.openai_errors import classify
from providers.dialects.openai_prompt import native_prompt
from providers.dialects.sglang_answer import SglangReader, decode_answer
from providers.dialects.sglang_fields import FIELDS, capabilities
from providers.failure import Failure
from providers.sse import SSEParser
from providers.unified import Operation, TokenPrompt, UnifiedRequest

_PROTECTED = ("text", "input_ids", "input_embeds", "stream", "model", "sampling_params.n", "logprob_start_len")


class SglangDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return raw_only(request, target, capabilities("logprobs" in request.params, target.profile.verifies))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        draft = Draft(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        member = "input_ids" if isinstance(request.prompt, TokenPrompt) else "text"
        draft.body[member] = native_prompt(target, draft.table, request.prompt)
        # Left out, it would be 128.
        draft.put("sampling_params.max_new_tokens", None)
        put_fields(draft, FIELDS)
        if request.stream:
            draft.body["stream"] = True
        return finished(draft, Operation.COMPLETIONS, "/generate", _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return NativeStream(SSEParser(), SglangReader(sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify(sent.target.profile, status, headers, body)
