"""The dialect of Triton's generate extension for TensorRT-LLM's models. It has no chat.

Sources: as in `providers.dialects.triton.fields`.
"""

from urllib.parse import quote

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.shared.decode_stream import NativeStream
from providers.dialects.shared.errors import OpenAIErrors
from providers.dialects.shared.prompt import prompt_text, required_limit
from providers.dialects.shared.request_body import RequestBody, finish_request, put_fields, put_unknown, raw_only
from providers.dialects.triton.answer import TritonReader, UntilEnd, decode_answer
from providers.dialects.triton.fields import ELSEWHERE, FIELDS, capabilities
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest

_PROTECTED = ("text_input", "stream", "num_return_sequences", "beam_width", "exclude_input_in_output")


class TritonDialect(OpenAIErrors):
    """The `Dialect` of Triton's generate extension."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return raw_only(request, target, capabilities(target.profile, target.context_window is not None))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        draft = RequestBody(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        draft.body = {
            "text_input": prompt_text(draft),
            "max_tokens": required_limit(draft),
            "exclude_input_in_output": True,
            # Token counts are always requested, because only they show whether the limit ended the text.
            "return_num_input_tokens": True,
            "return_num_output_tokens": True,
        }
        put_fields(draft, FIELDS, ELSEWHERE)
        path = f"/v2/models/{quote(target.upstream_model, safe='')}/generate"
        if request.stream:
            draft.body["stream"] = True
            path += "_stream"
        return finish_request(draft, Operation.COMPLETIONS, path, _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return NativeStream(UntilEnd(), TritonReader(sent))
