"""The dialect of IBM watsonx.ai, which has one endpoint for raw prompts and one for chats.

The base URL ends in the owner of the calls: `/projects/ID`, `/spaces/ID`, or `/deployments/ID` for a model that the
account deployed itself. The service knows the space of a deployment.

Sources: as in `providers.dialects.watsonx.fields`; ibm-watsonx-ai 1.8.1 `href_definitions`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import quote

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.openai.answer import decode_body
from providers.dialects.openai.messages import vendor_messages
from providers.dialects.shared.custom_tools import as_functions
from providers.dialects.shared.decode_stream import NativeStream
from providers.dialects.shared.operations import build_messages, choose_operation
from providers.dialects.shared.prompt import prompt_text
from providers.dialects.shared.request_body import FieldWriter, RequestBody, finish_request, put_fields, put_unknown
from providers.dialects.watsonx.answer import WatsonxChatStream, WatsonxReader, classify, decode_text
from providers.dialects.watsonx.fields import CHAT_FIELDS, TEXT_FIELDS, capabilities
from providers.failure import Failure
from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonObject
from providers.models.fit_profile import profile_for_model
from providers.target import Target
from providers.unified_request import AnyOperation, ChatPrompt, Operation, UnifiedRequest

_OWNER = re.compile(r"(?P<origin>.*)/(?P<kind>projects|spaces|deployments)/(?P<id>[^/]+)")
_OWNER_KEYS: Mapping[str, str] = {"projects": "project_id", "spaces": "space_id"}
_PROTECTED = ("model_id", "project_id", "space_id", "input", "messages", "n", "stream")


class WatsonxDialect:
    """The `Dialect` of watsonx.ai."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return capabilities(request.operation, choose_operation(request, target), target.profile.verifies)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        operation, owner = choose_operation(request, target), _owner(target)
        params, custom = as_functions(request.params)
        if custom:
            request = replace(request, params=params)
        draft = RequestBody(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        draft.body = {**owner.body_fields}
        endpoint = _ENDPOINTS[operation]
        endpoint.put_prompt(draft)
        put_fields(draft, endpoint.fields, endpoint.put_with_prompt)
        if custom:
            draft.emulated.append("tools")
        sent = finish_request(draft, operation, "", _PROTECTED)
        return replace(sent, url=_url(sent, owner), custom_tools=custom)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return _ENDPOINTS[sent.operation].decode(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return _ENDPOINTS[sent.operation].stream(sent)

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return classify(sent.target.profile, status, headers, body)


class _Owner(NamedTuple):
    """The URL before the endpoint's path, and the fields of the body that name the model and its project or space."""

    root: str
    body_fields: JsonObject


def _owner(target: Target) -> _Owner:
    model: JsonObject = {"model_id": target.upstream_model}
    found = _OWNER.fullmatch(target.base_url)
    if found is None:
        # The service itself refuses calls that need a project or a space.
        return _Owner(f"{target.base_url}/ml/v1", model)
    if found["kind"] == "deployments":
        return _Owner(f"{found['origin']}/ml/v1/deployments/{found['id']}", {})
    return _Owner(f"{found['origin']}/ml/v1", {**model, _OWNER_KEYS[found["kind"]]: found["id"]})


def _url(sent: UpstreamRequest, owner: _Owner) -> str:
    version = quote(sent.target.api_version or sent.target.profile.api_version or "", safe="")
    return f"{owner.root}/text/{_ENDPOINTS[sent.operation].path}{'_stream' if sent.stream else ''}?version={version}"


def _put_messages(draft: RequestBody) -> None:
    prompt, target = draft.request.prompt, draft.target
    if isinstance(prompt, ChatPrompt):
        profile = profile_for_model(target.profile, *target.model_names)
        draft.body["messages"] = vendor_messages(target, profile, prompt, draft.dropped)
    else:
        draft.body["messages"] = [*build_messages(draft)[0]]


def _put_text(draft: RequestBody) -> None:
    draft.body["input"] = prompt_text(draft)
    # Without a limit the server would apply its default of 20 tokens.
    limit = draft.params.get("max_tokens", draft.target.max_output_tokens)
    if limit is None:
        return
    if limit < 1:
        raise draft.invalid("max_tokens", "must be at least 1")
    draft.put("parameters.max_new_tokens", limit)


def _text_stream(sent: UpstreamRequest) -> StreamDecoder:
    return NativeStream(SSEParser(), WatsonxReader(sent))


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """One endpoint: the last part of its path, the writers of its calls, and the decoders of its responses.

    `put_with_prompt` are the fields that `put_prompt` writes besides the prompt.
    """

    path: str
    put_prompt: Callable[[RequestBody], None]
    fields: Mapping[str, FieldWriter]
    put_with_prompt: frozenset[str]
    decode: Callable[[UpstreamRequest, bytes], Completion]
    stream: Callable[[UpstreamRequest], StreamDecoder]


_ENDPOINTS: Mapping[AnyOperation, _Endpoint] = {
    Operation.COMPLETIONS: _Endpoint(
        "generation", _put_text, TEXT_FIELDS, frozenset({"max_tokens"}), decode_text, _text_stream
    ),
    Operation.CHAT: _Endpoint("chat", _put_messages, CHAT_FIELDS, frozenset(), decode_body, WatsonxChatStream),
}
