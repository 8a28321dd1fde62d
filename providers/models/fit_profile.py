"""Adapts a vendor's profile to one model by the facts about the model, which hold for every vendor that hosts it."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from providers.json_types import JsonObject
from providers.models.facts import NO_FACTS, ModelFacts, model_facts
from providers.profile import HookName, Profile, ToolChoice, Wire
from providers.unified_request import Operation

_EFFORT = "reasoning_effort"
_FORCED_CHOICES: frozenset[ToolChoice] = frozenset({"required", "named"})
_CALL_ID_HOOKS: tuple[HookName, ...] = ("forty_character_call_ids", "nine_character_call_ids")


def profile_for_model(whole: Profile, *names: str) -> Profile:
    """Return the profile for a model. `names` are its name at the vendor and, if that differs, its configured name."""
    return with_facts(whole.for_model(*names), model_facts(whole.model_host, names[0], names[-1]))


def with_facts(profile: Profile, facts: ModelFacts) -> Profile:
    """Return a profile with the rules of a model applied."""
    if facts is NO_FACTS:
        return profile
    wires = {operation: _wire(wire, facts) for operation, wire in profile.wires.items()}
    profile = replace(
        profile,
        wires=MappingProxyType(wires),
        bounds=MappingProxyType({**profile.bounds, **facts.bounds}),
        hooks=_hooks(profile.hooks, facts),
        blank_stops=facts.blank_stops,
        tool_choices=profile.tool_choices if facts.forced_choice else profile.tool_choices - _FORCED_CHOICES,
    )
    return _with_words(profile, facts) if facts.words else profile


def _wire(wire: Wire, facts: ModelFacts) -> Wire:
    return replace(wire, accepts=wire.accepts - facts.refuses)


def _hooks(hooks: tuple[HookName, ...], facts: ModelFacts) -> tuple[HookName, ...]:
    """Return the hooks, with the model's hook for call ids if it needs one. It replaces the vendor's hook, since an id
    of nine characters is shorter than any vendor's limit."""
    if not facts.nine_character_ids:
        return hooks
    return (*(hook for hook in hooks if hook not in _CALL_ID_HOOKS), "nine_character_call_ids")


def _with_words(profile: Profile, facts: ModelFacts) -> Profile:
    """Return a profile with the model's words of effort, unless the vendor has its own effort field, which has the
    vendor's words. A vendor's word that consists of other fields stays."""
    chat = profile.wires.get(Operation.CHAT)
    if chat is None or chat.rename.get(_EFFORT, _EFFORT) != _EFFORT:
        return profile
    own: Mapping[str, str | JsonObject] = profile.words.get(_EFFORT, {})
    words = {**own, **{value: word for value, word in facts.words.items() if not isinstance(own.get(value), dict)}}
    nearest = profile.nearest.get(_EFFORT, frozenset()) | facts.nearest
    return replace(
        profile,
        words=MappingProxyType({**profile.words, _EFFORT: words}),
        nearest=MappingProxyType({**profile.nearest, _EFFORT: nearest}),
    )
