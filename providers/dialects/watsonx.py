"""watsonx.ai: raw prompts and chats, each on an endpoint of its own; the outgoing request, and the door to its answers.

The deployment's address ends in what its calls belong to: `/projects/ID`, `/spaces/ID`, or `/deployments/ID`, which is
a model deployed by the account itself and knows its space. Never the token, which is a bearer's.

Sources: as `watsonx_fields`; ibm-watsonx-ai 1.8.1 `href_definitions`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.native_fields import Draft, finished, put_fields, put_unknown
from providers.dialects.native_raw import raw_text
from providers.dialects.native_stream import NativeStream
from providers.dialects.openai_answer import decode_body
from providers.dialects.openai_prompt import vendor_messages, wrapped_messages
from providers.dialects.watsonx_answer import ChatStream, TextReader, classify, decode_text
from providers.dialects.watsonx_fields import CHAT_FIELDS, TEXT_FIELDS, capabilities
from providers.failure import Failure
from providers.sse import SSEParser
from providers.unified import ChatPrompt, JsonObject, Operation, UnifiedRequest

_OWNER = re.compile(r"(?P<origin>.*)/(?P<kind>projects|spaces|deployments)/(?P<id>[^/]+)")
_MEMBERS: Mapping[str, str] = {"projects": "project_id", "spaces": "space_id"}
_PROTECTED = ("model_id", "project_id", "space_id", "input", "messages", "n", "stream")


class WatsonxDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return capabilities(request.operation, _operation(request, target), target.profile.verifies)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        operation, owner = _operation(request, target), _owner(target)
        draft = Draft(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        draft.body = {**owner.members}
        if operation is Operation.CHAT:
            _put_messages(draft)
            put_fields(draft, CHAT_FIELDS)
        else:
            draft.body["input"] = raw_text(draft)
            _put_limit(draft)
            put_fields(draft, TEXT_FIELDS, {"max_tokens"})
        sent = finished(draft, operation, "", _PROTECTED)
        return replace(sent, url=_url(sent, owner))

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_body(sent, body) if sent.operation is Operation.CHAT else decode_text(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return ChatStream(sent) if sent.operation is Operation.CHAT else NativeStream(SSEParser(), TextReader(sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify(sent.target.profile, status, headers, body)


class _Owner(NamedTuple):
    """Where a target's calls go, and the members that say what is asked and whom it belongs to."""

    root: str
    members: JsonObject


def _owner(target: Target) -> _Owner:
    model: JsonObject = {"model_id": target.upstream_model}
    found = _OWNER.fullmatch(target.base_url)
    if found is None:
        # Whether that is enough is for the service to say.
        return _Owner(f"{target.base_url}/ml/v1", model)
    if found["kind"] == "deployments":
        return _Owner(f"{found['origin']}/ml/v1/deployments/{found['id']}", {})
    return _Owner(f"{found['origin']}/ml/v1", {**model, _MEMBERS[found["kind"]]: found["id"]})


def _operation(request: UnifiedRequest, target: Target) -> Operation:
    """A prompt goes as it is, unless the table says that this model only chats, or it has tools beside it."""
    chats = request.operation is Operation.CHAT or target.completions is False or bool(request.params.get("tools"))
    return Operation.CHAT if chats else Operation.COMPLETIONS


def _url(sent: UpstreamRequest, owner: _Owner) -> str:
    kind = "chat" if sent.operation is Operation.CHAT else "generation"
    version = quote(sent.target.api_version or sent.target.profile.api_version or "", safe="")
    return f"{owner.root}/text/{kind}{'_stream' if sent.stream else ''}?version={version}"


def _put_messages(draft: Draft) -> None:
    prompt, images = draft.request.prompt, "images" in draft.params
    if isinstance(prompt, ChatPrompt):
        draft.body["messages"] = vendor_messages(draft.target, draft.target.profile, prompt)
        return
    draft.emulated.extend(("prompt", "images") if images else ("prompt",))
    draft.body["messages"] = wrapped_messages(draft.target, draft.table, draft.request)


def _put_limit(draft: Draft) -> None:
    """The server's own would be 20 tokens."""
    limit = draft.params.get("max_tokens", draft.target.max_output_tokens)
    if limit is None:
        return
    if limit < 1:
        raise draft.invalid("max_tokens", "must be at least 1")
    draft.put("parameters.max_new_tokens", limit)
