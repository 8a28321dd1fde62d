"""Adapts a translated request to what vendors have in common, before its calls are planned for one of them."""

from dataclasses import replace

from providers.adaptation.allowed_tools import ALLOWED, FIELD, allows_some, with_allowed_tools
from providers.adaptation.order_results import with_results_behind_calls
from providers.adaptation.unique_call_ids import with_unique_ids
from providers.target import Target
from providers.unified_request import ChatPrompt, UnifiedRequest


def adapt_request(request: UnifiedRequest, target: Target) -> tuple[UnifiedRequest, tuple[str, ...]]:
    """Return the request in a form that the target may take, and the unified fields in which the gateway has a part by
    that. The very same where there is nothing to adapt. Raises Refusal."""
    emulated: tuple[str, ...] = ()
    prompt = request.prompt
    if isinstance(prompt, ChatPrompt) and not prompt.plain:
        unique = with_unique_ids(prompt.messages)
        ordered = with_results_behind_calls(unique)
        if ordered is not prompt.messages:
            request = replace(request, prompt=ChatPrompt(ordered))
        if ordered is not unique:
            emulated = ("messages",)
    if allows_some(request.params) and not target.profile.takes_tool(ALLOWED):
        request = replace(request, params=with_allowed_tools(request.params))
        emulated = (*emulated, FIELD)
    return request, emulated
