"""Amazon Bedrock's Converse and ConverseStream.

These operations accept conversations only, so a prompt becomes one user message. This module does not sign the
requests.

Sources: botocore 1.44.5 service model `bedrock-runtime` 2023-09-30.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from urllib.parse import quote

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.bedrock.converse_answer import decode_converse
from providers.dialects.bedrock.converse_cache import limit_points
from providers.dialects.bedrock.converse_fields import WRITTEN_ELSEWHERE, capabilities, put_usual_output, writers
from providers.dialects.bedrock.converse_messages import BedrockConversation, service_call_id, without_calls
from providers.dialects.bedrock.converse_models import ConverseModel, converse_model
from providers.dialects.bedrock.converse_stream import ConverseReader
from providers.dialects.bedrock.converse_thinking import honoured_display, settle_thinking
from providers.dialects.bedrock.converse_tools import BedrockToolNames, put_tools, read_tools
from providers.dialects.platforms.aws_errors import BEDROCK, classify_answer
from providers.dialects.platforms.aws_events import EventFrames
from providers.dialects.shared.decode_stream import NativeStream, SingleResponseStream
from providers.dialects.shared.operations import build_messages, check_operation
from providers.dialects.shared.request_body import RequestBody, finish_request, put_fields, put_unknown
from providers.dialects.shared.tool_names import nine_character_id, offered_names
from providers.failure import Failure
from providers.json_types import JsonObject
from providers.models.facts import model_facts
from providers.models.fit_profile import profile_for_model
from providers.profile import Profile
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest

_PROTECTED = ("messages", "system")


class BedrockDialect:
    """The dialect of Bedrock's Converse."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        operation, counted = check_operation(request, target), target.context_window is not None
        return capabilities(_profile(target), _model(target), operation, counted)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        model = _model(target)
        request, marker, service_fields = _split_service_fields(request)
        draft = RequestBody(request, target, self.capabilities(request, target), service_fields)
        put_unknown(draft)
        offered = read_tools(request.params)
        names = BedrockToolNames(offered_names(offered.params))
        conversation = _conversation(draft, names, model, marker)
        draft.body["messages"] = [*conversation.turns]
        if conversation.system:
            draft.body["system"] = [*conversation.system]
        if not put_tools(draft, names, offered, model) and conversation.calls:
            draft.emulated.append("messages")
            draft.body["messages"] = [*without_calls(conversation.turns)]
        put_fields(draft, writers(_profile(target), model), WRITTEN_ELSEWHERE)
        put_usual_output(draft, model)
        settle_thinking(draft, model, conversation)
        if limit_points(draft.body):
            draft.dropped.append("cache_control")
        non_streaming = request.stream and "toolConfig" in draft.body and not model.streams_tools
        action = "converse-stream" if request.stream and not non_streaming else "converse"
        sent = finish_request(draft, Operation.CHAT, model_path(target, action), _PROTECTED, names.changed())
        honoured_names = honoured_display(draft)
        if not (offered.custom or honoured_names or non_streaming):
            return sent
        return replace(sent, custom_tools=offered.custom, honoured=honoured_names, whole=non_streaming)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return decode_converse(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        if sent.whole:
            return SingleResponseStream(partial(decode_converse, sent))
        return NativeStream(EventFrames(BEDROCK), ConverseReader(sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return classify_answer(BEDROCK, status, headers, body)


def model_path(target: Target, action: str) -> str:
    """Return the path of a call. The whole model id is escaped, as the signature requires."""
    return f"/model/{quote(target.upstream_model, safe='')}/{action}"


def _profile(target: Target) -> Profile:
    return _cached_profile(target.profile, *target.model_names)


@lru_cache(maxsize=4096)
def _cached_profile(profile: Profile, *names: str) -> Profile:
    return profile_for_model(profile, *names)


def _model(target: Target) -> ConverseModel:
    return converse_model(*target.model_names)


_SERVICE_FIELDS = frozenset(
    {"guardrailConfig", "performanceConfig", "promptVariables", "inferenceConfig", "outputConfig", "requestMetadata"}
    | {"additionalModelRequestFields", "additionalModelResponseFieldPaths", "serviceTier"}
)
"""Fields of the service's own request, which clients may send unchanged."""


def _split_service_fields(request: UnifiedRequest) -> tuple[UnifiedRequest, JsonObject | None, JsonObject]:
    """Return a request in three parts: the request without the service's own fields and without a top-level cache
    marker, that cache marker (which marks the end of the conversation), and the service's own fields."""
    given = request.unknown or {}
    service_fields = {name: value for name, value in given.items() if name in _SERVICE_FIELDS}
    marker = given.get("cache_control")
    if not service_fields and marker is None:
        return request, None, {}
    rest = {name: value for name, value in given.items() if name not in service_fields and name != "cache_control"}
    return replace(request, unknown=rest), marker if isinstance(marker, dict) else None, service_fields


def _conversation(
    draft: RequestBody, names: BedrockToolNames, model: ConverseModel, marker: JsonObject | None
) -> BedrockConversation:
    messages, field = build_messages(draft)
    target = draft.target
    facts = model_facts(target.profile.model_host, *target.model_names)
    call_id = nine_character_id if facts.nine_character_ids else service_call_id
    conversation = BedrockConversation(names, field, model, call_id)
    conversation.read(messages)
    if marker is not None:
        conversation.mark_end(marker)
    draft.dropped += conversation.dropped
    if conversation.folded:
        draft.emulated.append("messages")
    return conversation
