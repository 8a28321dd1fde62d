"""LLM Engine's own completions: the outgoing request, and the door to its answers.

Never a chat: its second version has one in OpenAI's shape, for any compatible server's profile.

Sources: as `llm_engine_fields`; scaleapi/llm-engine `api/llms_v1.py`.
"""

from collections.abc import Mapping
from urllib.parse import quote

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.llm_engine_answer import EngineReader, decode_answer
from providers.dialects.llm_engine_fields import ELSEWHERE, FIELDS, HOTTEST, capabilities
from providers.dialects.native_fields import Draft, finished, put_fields, put_unknown, raw_only
from providers.dialects.native_raw import needed_limit, raw_text
from providers.dialects.native_stream import NativeStream
from providers.dialects.openai_errors import classify
from providers.failure import Failure
from providers.sse import SSEParser
from providers.unified import Operation, UnifiedRequest

_PROTECTED = ("prompt", "max_new_tokens")


class LlmEngineDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return raw_only(request, target, capabilities(target.profile.verifies))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        draft = Draft(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        # It must be told a temperature; this one is what the four completion APIs take for granted.
        draft.body = {"prompt": raw_text(draft), "max_new_tokens": needed_limit(draft), "temperature": HOTTEST}
        put_fields(draft, FIELDS, ELSEWHERE)
        kind = "stream" if request.stream else "sync"
        path = f"/v1/llm/completions-{kind}?model_endpoint_name={quote(target.upstream_model, safe='')}"
        return finished(draft, Operation.COMPLETIONS, path, _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return NativeStream(SSEParser(), EngineReader(sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify(sent.target.profile, status, headers, body)
