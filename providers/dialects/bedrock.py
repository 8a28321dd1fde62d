"""Amazon Bedrock's Converse and ConverseStream: the outgoing request, and the door to its answers.

Never a signature, and never raw continuation: the service makes a model's own template of the conversation.

Sources: botocore 1.44.5 service model `bedrock-runtime` 2023-09-30.
"""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.bedrock_answer import decode_converse
from providers.dialects.bedrock_errors import classify_answer
from providers.dialects.bedrock_fields import ELSEWHERE, capabilities, writers
from providers.dialects.bedrock_frames import EventFrames
from providers.dialects.bedrock_messages import Conversation, without_calls
from providers.dialects.bedrock_stream import ConverseReader
from providers.dialects.bedrock_tools import ToolNames, put_tools
from providers.dialects.native_fields import Draft, finished, put_fields, put_unknown
from providers.dialects.native_stream import NativeStream
from providers.dialects.openai_prompt import wrapped_messages
from providers.failure import Failure
from providers.profiles import Profile
from providers.tool_names import offered_names
from providers.unified import ChatPrompt, Operation, UnifiedRequest

_PROTECTED = ("messages", "system")


class BedrockDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return capabilities(_row(target), request.operation, target.context_window is not None)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        draft = Draft(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        names = ToolNames(offered_names(request.params))
        conversation = _conversation(draft, names)
        draft.body["messages"] = [*conversation.turns]
        if conversation.system:
            draft.body["system"] = [*conversation.system]
        if not put_tools(draft, names) and conversation.calls:
            draft.emulated.append("messages")
            draft.body["messages"] = [*without_calls(conversation.turns)]
        put_fields(draft, writers(_row(target)), ELSEWHERE)
        action = "converse-stream" if request.stream else "converse"
        return finished(draft, Operation.CHAT, model_path(target, action), _PROTECTED, names.changed())

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_converse(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return NativeStream(EventFrames(), ConverseReader(sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify_answer(status, headers, body)


def model_path(target: Target, action: str) -> str:
    """The path of a call: every character of the model's id that is not plain is escaped, as signatures want it."""
    return f"/model/{quote(target.upstream_model, safe='')}/{action}"


def _row(target: Target) -> Profile:
    return _row_of(target.profile, target.upstream_model, target.model)


@lru_cache(maxsize=4096)
def _row_of(profile: Profile, *names: str) -> Profile:
    return profile.for_model(*names)


def _conversation(draft: Draft, names: ToolNames) -> Conversation:
    prompt = draft.request.prompt
    if isinstance(prompt, ChatPrompt):
        conversation = Conversation(names, "messages")
        conversation.read(prompt.messages)
    else:
        images = "images" in draft.params
        draft.emulated.extend(("prompt", "images") if images else ("prompt",))
        conversation = Conversation(names, "images" if images else "prompt")
        conversation.read(wrapped_messages(draft.target, draft.table, draft.request))
    if conversation.folded:
        draft.emulated.append("messages")
    return conversation
