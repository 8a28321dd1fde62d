"""Scale LLM Engine's own completions API.

This API has no chat. The API's second version has a chat in OpenAI's shape, for which any OpenAI-compatible profile
works.

Sources: as in `providers.dialects.llm_engine.fields`; scaleapi/llm-engine `api/llms_v1.py`.
"""

from urllib.parse import quote

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.llm_engine.answer import EngineReader, decode_answer
from providers.dialects.llm_engine.fields import ELSEWHERE, FIELDS, HOTTEST, capabilities
from providers.dialects.shared.decode_stream import NativeStream
from providers.dialects.shared.errors import OpenAIErrors
from providers.dialects.shared.prompt import prompt_text, required_limit
from providers.dialects.shared.request_body import RequestBody, finish_request, put_fields, put_unknown, raw_only
from providers.framing.parse_sse import SSEParser
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest

_PROTECTED = ("prompt", "max_new_tokens")


class LlmEngineDialect(OpenAIErrors):
    """The `Dialect` of LLM Engine's completions."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return raw_only(request, target, capabilities(target.profile.verifies))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        draft = RequestBody(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        # The engine requires a temperature. This one is the default of the four completion APIs that clients speak.
        draft.body = {"prompt": prompt_text(draft), "max_new_tokens": required_limit(draft), "temperature": HOTTEST}
        put_fields(draft, FIELDS, ELSEWHERE)
        kind = "stream" if request.stream else "sync"
        path = f"/v1/llm/completions-{kind}?model_endpoint_name={quote(target.upstream_model, safe='')}"
        return finish_request(draft, Operation.COMPLETIONS, path, _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return NativeStream(SSEParser(), EngineReader(sent))
