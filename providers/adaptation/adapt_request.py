"""Adapts a translated request to what vendors have in common, before its calls are planned for one of them."""

from dataclasses import replace

from providers.adaptation.allowed_tools import ALLOWED, FIELD, allows_some, with_allowed_tools
from providers.adaptation.order_results import with_results_behind_calls
from providers.adaptation.unique_call_ids import with_unique_ids
from providers.frozen_record import record
from providers.hosted_tools.translate_hosted import asks_hosted, translate_hosted
from providers.target import Target
from providers.unified_request import ChatPrompt, UnifiedRequest


@record
class AdaptedRequest:
    """A request in a form that the target may take, the same object if there was nothing to adapt; the unified fields
    that the gateway emulates by this, and the settings that are left out."""

    request: UnifiedRequest
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def named(self) -> bool:
        """Whether the headers of the response name any of these fields."""
        return bool(self.emulated or self.dropped)

    def also(self, emulated: tuple[str, ...]) -> tuple[str, ...]:
        """Return the emulated fields with further ones."""
        return tuple(dict.fromkeys((*self.emulated, *emulated)))


def adapt_request(request: UnifiedRequest, target: Target) -> AdaptedRequest:
    """Return the request as it is planned for the target. Raises Refusal."""
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
    if allows_some(request.params) and not target.profile.takes_tool(ALLOWED):
        request = replace(request, params=with_allowed_tools(request.params))
        emulated = (*emulated, FIELD)
    if asks_hosted(request.params):
        hosted = translate_hosted(request, target)
        request, dropped = hosted.request, hosted.dropped
        emulated = (*emulated, *hosted.emulated)
    return AdaptedRequest(request, emulated, dropped)
