"""Fits a request to the model of a target before a dialect encodes the request: the limit of the response, settings
that exclude each other, and the end of the conversation. Such rules are properties of the model, so they apply at every
vendor and to native bodies too.



Sources: `providers.models.facts`; Anthropic's "Extended thinking" page for budgets below `max_tokens`, November 2026.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from providers.adaptation.beside_thinking import fit_beside_thinking
from providers.client_extras.answer_amounts import held_to
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.models.claude import MIN_BUDGET, fit_budget
from providers.models.facts import ModelFacts, model_facts
from providers.request_fields import is_neutral
from providers.target import Target
from providers.unified_request import INSTRUCTION_ROLES, ChatPrompt, NativeApi, NativeRequest, Params, UnifiedRequest

_LIMIT: Final = "max_tokens"
_EFFORT: Final = "reasoning_effort"
_THINKING: Final = "thinking"


@dataclass(frozen=True, slots=True, eq=False)
class FittedRequest:
    """A request in the form that a model accepts. `max_tokens` is the lowered limit, `None` if the client's limit was
    not lowered. `dropped` are the fields that were left out."""

    request: UnifiedRequest
    max_tokens: int | None = None
    dropped: tuple[str, ...] = ()

    @property
    def emulated(self) -> tuple[str, ...]:
        """The fields that this adaptation emulates."""
        return () if self.max_tokens is None else (_LIMIT,)


def fit_to_model(request: UnifiedRequest, target: Target) -> FittedRequest | None:
    """Return the request in the form that the target's model accepts; `None` if the model accepts the request
    unchanged. Raises Refusal for values that the model is known to refuse."""
    facts = model_facts(target.profile.model_host, *target.model_names)
    given, max_tokens, dropped = request, None, tuple[str, ...]()
    own, limit = target.max_output_tokens, request.params.get(_LIMIT)
    most = own or facts.most_output
    if most is not None and (limit > most if limit is not None else _thinks_beyond(request, own)):
        (request, dropped), max_tokens = _lowered(request, target, most), most
    if own is not None and (held := _with_held_members(request, target, own)) is not request:
        request, max_tokens = held, own
    if not facts.prefill and _ends_in_text(request):
        message = (
            f"'messages' ends in a text of the assistant, which the model of {target.name} does not continue: the "
            "conversation must end with a message of the user."
        )
        raise Refusal("messages", message)
    if facts.omits:
        request = _without_neutral(request, facts.omits)
    if facts.one_sampler:
        request = _with_one_sampler(request, target)
    if facts.unthinking and _is_off(request.params):
        request = _unthinking(request, target, facts)
    if facts.thinking or not facts.thinking_choice:
        request, left_out = fit_beside_thinking(request, target, facts)
        dropped = (*dropped, *left_out)
    return None if request is given else FittedRequest(request, max_tokens, dropped)


# The limit ------------------------------------------------------------------------------------------------------------


def _lowered(request: UnifiedRequest, target: Target, most: int) -> tuple[UnifiedRequest, tuple[str, ...]]:
    """Return the request with the limit `most`, and the fields that had to be left out because of that limit. A
    thinking budget is lowered so that tokens for the text remain within the limit. If the limit is too small for the
    smallest budget, `thinking` is left out."""
    budget = _budget(request.params.get(_THINKING)) or _budget(_native_member(request, _THINKING))
    if budget is None or budget < most or target.dialect.capabilities(request, target)[_THINKING].refused:
        return _with(request, _LIMIT, most), ()
    if most <= MIN_BUDGET:
        return _with(request.without({_THINKING}), _LIMIT, most), (_THINKING,)
    smaller = fit_budget(budget, most)
    request = _changed(request, _THINKING, lambda thinking: {**_object(thinking), "budget_tokens": smaller})
    return _with(request, _LIMIT, most), ()


def _thinks_beyond(request: UnifiedRequest, own: int | None) -> bool:
    """Return whether a request without a limit has a thinking budget of at least the operator's limit `own`."""
    if own is None or _THINKING not in request.params:
        return False
    return (_budget(request.params[_THINKING]) or 0) >= own


def _with_held_members(request: UnifiedRequest, target: Target, most: int) -> UnifiedRequest:
    """Return the request with the operator's limit `most` in place of greater limits in fields that are passed through
    to the vendor; the same object if there are none."""
    dialect, native = target.profile.dialect, request.native
    unknown = request.unknown and held_to(most, dialect, request.unknown)
    extra = request.extra_params and held_to(most, dialect, request.extra_params)
    body = None if native is None else held_to(most, dialect, native.body)
    if native is not None and body is not native.body:
        native = replace(native, body=dict(body or {}))
    if unknown is request.unknown and extra is request.extra_params and native is request.native:
        return request
    return replace(request, unknown=unknown, extra_params=extra, native=native)


def _object(value: object) -> Mapping[str, JsonValue]:
    return cast(Mapping[str, JsonValue], value) if isinstance(value, dict) else {}


def _budget(thinking: object) -> int | None:
    budget = _object(thinking).get("budget_tokens")
    return budget if isinstance(budget, int) else None


def _native_member(request: UnifiedRequest, name: str) -> object:
    return request.native.body.get(name) if request.native is not None else None


def _with(request: UnifiedRequest, name: str, value: object) -> UnifiedRequest:
    """Return the request with the param set to a value. Dialects also write the limit into a native body from this
    param."""
    return replace(request, params=cast(Params, {**request.params, name: value}))


def _changed(request: UnifiedRequest, name: str, change: Callable[[object], object]) -> UnifiedRequest:
    """Return the request with a field changed in its params and in its native body, in each if the field is present."""
    if name in request.params:
        request = _with(request, name, change(request.params[name]))  # type: ignore[literal-required]  # a param
    native = request.native
    if native is not None and native.body.get(name) is not None:
        body = {**native.body, name: cast(JsonValue, change(native.body[name]))}
        request = replace(request, native=replace(native, body=body))
    return request


# Settings that exclude each other -------------------------------------------------------------------------------------


def _without_neutral(request: UnifiedRequest, names: frozenset[str]) -> UnifiedRequest:
    """Return the request without each given field whose value is neutral; the same object if no field is removed. A
    temperature of 1 is neutral, since it is the default of models."""
    asking_nothing = []
    for name, value in request.params.items():
        if name in names and (is_neutral(name, value) or (value == 1 and name == "temperature")):
            asking_nothing.append(name)
    return request.without(asking_nothing) if asking_nothing else request


def _with_one_sampler(request: UnifiedRequest, target: Target) -> UnifiedRequest:
    """Return the request with `temperature` or `top_p`, not both. The field that is neutral or that the client's API
    filled in is left out. Raises Refusal if the client set both to values that are not neutral."""
    params = request.params
    if "temperature" not in params or "top_p" not in params:
        return request
    if is_neutral("top_p", params["top_p"]) or "top_p" in request.injected:
        return request.without({"top_p"})
    if params["temperature"] == 1 or "temperature" in request.injected:
        return request.without({"temperature"})
    why = "its model takes 'temperature' or 'top_p', not both"
    raise Refusal("top_p", f"'top_p' is not supported by {target.name} beside 'temperature': {why}.")


def _is_off(params: Params) -> bool:
    """Return whether the client switches reasoning off."""
    return params.get(_EFFORT) in ("none", False) or _object(params.get(_THINKING)).get("type") == "disabled"


def _unthinking(request: UnifiedRequest, target: Target, facts: ModelFacts) -> UnifiedRequest:
    """Return the request without the settings that the model restricts while reasoning is off. Raises Refusal for a
    value outside the accepted range."""
    for name, (low, high) in facts.unthinking.items():
        value = request.params.get(name)
        if isinstance(value, int | float):
            if not low <= value <= high and name not in request.injected:
                why = f"without thinking it must be {low:g}"
                raise Refusal(name, f"'{name}' is not supported by {target.name}: {why}.")
            request = request.without({name})
    return request


# The end of the conversation ------------------------------------------------------------------------------------------


def _ends_in_text(request: UnifiedRequest) -> bool:
    """Return whether the response would continue a text of the model. A turn that was paused while the vendor's own
    tools ran does not count: the client sends it back so that the vendor continues it."""
    if (native := request.native) is not None and native.api is NativeApi.MESSAGES:
        return _ends_own_body(native)
    prompt = request.prompt
    messages = prompt.messages if isinstance(prompt, ChatPrompt) else ()
    # Instructions after the text do not count: they are moved to the beginning.
    last: JsonObject = next((each for each in reversed(messages) if each.get("role") not in INSTRUCTION_ROLES), {})
    if last.get("role") != "assistant" or last.get("tool_calls") or last.get("content_blocks"):
        return False
    return _has_text(last.get("content"))


def _ends_own_body(native: NativeRequest) -> bool:
    turns = native.body.get("messages")
    last = turns[-1] if isinstance(turns, list) and turns else None
    if not isinstance(last, dict) or last.get("role") != "assistant":
        return False
    content = last.get("content")
    kinds = [block.get("type") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return all(kind in ("text", "thinking", "redacted_thinking") for kind in kinds) and _has_text(content)


def _has_text(content: JsonValue) -> bool:
    """Return whether a message's content holds a text that is not blank. Turns without such a text are not sent to
    vendors."""
    if isinstance(content, str):
        return bool(content.strip())
    texts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return any(isinstance(text, str) and text.strip() for text in texts)
