"""Plans the calls of a request that a surface translated from another API's shape, with the losses of the translation.

A target that speaks the client's API gets the client's own body, and nothing is lost. For any other target, a field
with an effect that no other API can honour is refused. A field without a promised effect is reported as left out.

For engines, later instructions within the conversation become text of the user, because the templates of many models
refuse instructions there. Claude Code 2.1.197 sends an instruction behind its first turn.
"""

from dataclasses import replace
from typing import Final, cast

from providers.adaptation.instructions import behind_instructions
from providers.adaptation.merged_messages import merged_contents
from providers.emulation.plan_calls import CallPlan, plan_calls
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.models.claude import usual_effort
from providers.target import NO_MEDIA, Media, OnUnsupported, Target
from providers.unified_request import (
    INSTRUCTION_ROLES,
    ChatPrompt,
    ContextBehavior,
    Params,
    Prompt,
    TranslationLosses,
    UnifiedRequest,
)

_EFFORT: Final = "reasoning_effort"


def plan_translated(
    losses: TranslationLosses,
    request: UnifiedRequest,
    target: Target,
    on_unsupported: OnUnsupported = "error",
    behavior: ContextBehavior | None = None,
    media: Media = NO_MEDIA,
) -> CallPlan:
    """Plan as `plan_calls` does. Raises Refusal."""
    asked = request.params
    given_up: list[str] = []
    given = request.prompt
    if target.is_engine and isinstance(given, ChatPrompt):
        request = replace(request, prompt=given.changed_by(instructions_as_users))
    if losses.unsaid:
        request = _with_usual(request, target, losses)
    while True:
        try:
            plan = plan_calls(request, target, "error", behavior, media)
            break
        except Refusal as refusal:
            name = refusal.param
            if refusal.code == "invalid_value" and name in losses.binding:
                # The rest of the field is invalid without the parts that the translation had to leave out.
                raise _unsaid(name, losses.binding[name], target) from None
            if name in losses.instead and name in request.params:
                given_up.append(name)
                request = _without(request, name, losses)
                continue
            if on_unsupported == "error":
                raise
        plan = plan_calls(request, target, on_unsupported, behavior, media)
        break
    if plan.calls and plan.calls[0].sent.native:
        return replace(plan, dropped=(*plan.dropped, *losses.native_left_out)) if losses.native_left_out else plan
    for param, subject in losses.binding.items():
        raise _unsaid(param, subject, target)
    honoured = plan.calls[0].sent.honoured if plan.calls else ()
    left_out = [name for name in losses.left_out if name not in honoured]
    moved = ("messages",) if _messages(request.prompt) is not _messages(given) else ()
    kept = [name for name in given_up if any(other in request.params for other in losses.instead[name])]
    lost = [name for name in given_up if name in asked and name not in kept]
    return replace(
        plan,
        emulated=tuple(dict.fromkeys((*plan.emulated, *kept, *moved))),
        dropped=tuple(dict.fromkeys((*plan.dropped, *lost, *left_out))),
    )


def _with_usual(request: UnifiedRequest, target: Target, losses: TranslationLosses) -> UnifiedRequest:
    """Return the request with the model's usual effort, if the client left the effort to the model."""
    usual = None if target.profile.model_host == "weights" else usual_effort(*target.model_names)
    if usual is None or _EFFORT not in losses.unsaid or _EFFORT not in request.params:
        return request
    return replace(request, params={**request.params, _EFFORT: usual})


def _unsaid(param: str, subject: str, target: Target) -> Refusal:
    """Return the refusal of a field that only the client's own API has."""
    why = f"is part of the API that this request came by alone, and {target.name} is called by another"
    return Refusal(param.partition(".")[0], f"{subject[:1].upper()}{subject[1:]} {why}.")


def _without(request: UnifiedRequest, name: str, losses: TranslationLosses) -> UnifiedRequest:
    """Return the request with a field replaced by its substitutes. Substitutes that the client gave itself stay
    unchanged."""
    params = {key: value for key, value in request.params.items() if key != name}
    return replace(request, params=cast(Params, {**losses.instead[name], **params}))


def _messages(prompt: Prompt) -> tuple[JsonObject, ...]:
    return prompt.messages if isinstance(prompt, ChatPrompt) else ()


def instructions_as_users(messages: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    """Return the messages with later instructions as text of user turns; instructions and user turns in a row become
    one turn. Return the same object if there are no later instructions."""
    begun = behind_instructions(messages)
    if not any([message["role"] in INSTRUCTION_ROLES for message in messages[begun:]]):
        return messages
    turns = [*messages[:begun]]
    merged: list[JsonValue] = []
    moved = False
    for message in messages[begun:]:
        instructs = message["role"] in INSTRUCTION_ROLES
        turn = {**message, "role": "user"} if instructs else message
        if turns and turns[-1]["role"] == turn["role"] == "user" and (instructs or moved):
            merged = merged or [turns[-1]["content"]]
            merged.append(turn["content"])
        else:
            _close(turns, merged)
            merged = []
            turns.append(turn)
        moved = instructs
    _close(turns, merged)
    return tuple(turns)


def _close(turns: list[JsonObject], merged: list[JsonValue]) -> None:
    """Give the last turn the contents that were merged into it."""
    if merged:
        turns[-1] = {"role": "user", "content": merged_contents(merged)}
