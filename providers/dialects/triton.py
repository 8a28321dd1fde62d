"""Triton's generate extension before TensorRT-LLM's models: the outgoing request, and the door to its answers.

Never a chat: the templates are the client's own there.

Sources: as `triton_fields`.
"""

from collections.abc import Mapping
from urllib.parse import quote

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.native_fields import Draft, finished, put_fields, put_unknown, raw_only
from providers.dialects.native_raw import needed_limit, raw_text
from providers.dialects.native_stream import NativeStream
from providers.dialects.openai_errors import classify
from providers.dialects.triton_answer import TritonReader, UntilEnd, decode_answer
from providers.dialects.triton_fields import ELSEWHERE, FIELDS, capabilities
from providers.failure import Failure
from providers.unified import Operation, UnifiedRequest

_PROTECTED = ("text_input", "stream", "num_return_sequences", "beam_width", "exclude_input_in_output")


class TritonDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return raw_only(request, target, capabilities(target.profile, target.context_window is not None))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        draft = Draft(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        draft.body = {
            "text_input": raw_text(draft),
            "max_tokens": needed_limit(draft),
            "exclude_input_in_output": True,
            # Asked always, since nothing else tells whether the limit ended the text.
            "return_num_input_tokens": True,
            "return_num_output_tokens": True,
        }
        put_fields(draft, FIELDS, ELSEWHERE)
        path = f"/v2/models/{quote(target.upstream_model, safe='')}/generate"
        if request.stream:
            draft.body["stream"] = True
            path += "_stream"
        return finished(draft, Operation.COMPLETIONS, path, _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return NativeStream(UntilEnd(), TritonReader(sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify(sent.target.profile, status, headers, body)
