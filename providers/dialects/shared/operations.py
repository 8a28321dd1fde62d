"""Chooses the vendor's operation for a request and its URL, and wraps prompts that are sent as chats."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from providers.capabilities import PREFIXED, REFUSED, Cell
from providers.dialects.shared.prompt import wrapped_messages
from providers.dialects.shared.request_body import RequestBody
from providers.failure import Refusal
from providers.json_types import JsonValue
from providers.profile import Profile
from providers.target import Target
from providers.unified_request import ChatPrompt, Operation, UnifiedRequest

ECHO_CELLS: Mapping[Operation, Mapping[str, Cell]] = {
    Operation.COMPLETIONS: {"echo": PREFIXED},
    Operation.CHAT: {"echo": REFUSED, "echo.logprobs": REFUSED},
}
"""By the client's operation: the cells of `echo` on APIs without their own echo."""

# By whether prompts are sent as chats: the vendor's operation for each of the client's operations.
_OUTGOING: Mapping[bool, Mapping[Operation, Operation]] = {
    True: {Operation.COMPLETIONS: Operation.CHAT, Operation.CHAT: Operation.CHAT},
    False: {Operation.COMPLETIONS: Operation.COMPLETIONS, Operation.CHAT: Operation.CHAT},
}


def check_operation(request: UnifiedRequest, target: Target) -> Operation:
    """Return the request's operation. Raises Refusal for any operation except completions and chat."""
    if request.operation not in _OUTGOING[False]:
        name = str(request.operation)
        raise Refusal(name, f"'{name}' is not supported by {target.name}.")
    return request.operation


def choose_operation(request: UnifiedRequest, target: Target) -> Operation:
    """Return the upstream operation of a request, on an API with raw prompts and chats.

    A prompt is sent as a chat if the configuration says that the model takes only chats, or if the request has tools.
    Raises Refusal for other operations.
    """
    outgoing = _OUTGOING[target.completions is False or bool(request.params.get("tools"))]
    return outgoing[check_operation(request, target)]


def build_messages(draft: RequestBody) -> tuple[Sequence[JsonValue], str]:
    """Return the messages of a chat in OpenAI's shape, and the client's field that they come from.

    A prompt and its images become one user message. Raises Refusal for a prompt that cannot be sent as a chat.
    """
    prompt = draft.request.prompt
    if isinstance(prompt, ChatPrompt):
        return prompt.messages, "messages"
    images = "images" in draft.params
    draft.emulated.extend(("prompt", "images") if images else ("prompt",))
    return wrapped_messages(draft.target, draft.table, draft.request), "images" if images else "prompt"


def endpoint_url(target: Target, profile: Profile, path: str) -> str:
    """Return the URL of a path of the OpenAI family's API. On Azure the path is below the model's own path, and the
    version is in the query."""
    url = target.base_url
    if profile.model_in == "path":
        url += f"/openai/deployments/{quote(target.upstream_model, safe='')}"
    version = target.api_version or profile.api_version
    return f"{url}{path}" if version is None else f"{url}{path}?api-version={quote(version, safe='')}"
