"""Adapts a translated request in the ways that most vendors need, before its calls are planned."""

from dataclasses import replace

from providers.adaptation.allowed_tools import ALLOWED, FIELD, allows_some, with_allowed_tools
from providers.adaptation.order_results import with_results_behind_calls
from providers.adaptation.unique_call_ids import with_unique_ids
from providers.frozen_record import frozen
from providers.hosted_tools.translate_hosted import asks_hosted, translate_hosted
from providers.request_fields import SEARCH
from providers.target import Target
from providers.unified_request import ChatPrompt, UnifiedRequest


@frozen
class AdaptedRequest:
    """An adapted request, the unified fields that the adaptation emulates, and the settings that are left out."""

    request: UnifiedRequest
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def also(self, emulated: tuple[str, ...]) -> tuple[str, ...]:
        """Return the emulated fields followed by further emulated fields, each once."""
        return tuple(dict.fromkeys((*self.emulated, *emulated)))


def adapt_request(request: UnifiedRequest, target: Target) -> AdaptedRequest | None:
    """Return the adapted request, whose calls are then planned for the target; `None` if nothing changes. Raises
    Refusal."""
    given, params = request, request.params
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    prompt = request.prompt
    if isinstance(prompt, ChatPrompt) and not prompt.plain:
        unique = with_unique_ids(prompt.messages)
        ordered = with_results_behind_calls(unique)
        if ordered is not prompt.messages:
            request = replace(request, prompt=ChatPrompt(ordered))
        if ordered is not unique:
            emulated = ("messages",)
    if "tool_choice" in params and allows_some(params) and not target.profile.takes_tool(ALLOWED):
        request = replace(request, params=with_allowed_tools(request.params))
        emulated = (*emulated, FIELD)
    if ("tools" in params or SEARCH in params) and asks_hosted(request.params):
        hosted = translate_hosted(request, target)
        request, dropped = hosted.request, hosted.dropped
        emulated = (*emulated, *hosted.emulated)
    changed = request is not given or emulated or dropped
    return AdaptedRequest(request, emulated, dropped) if changed else None
