"""Decides which deployments need clients to send back the reasoning of earlier turns.

Some vendors sign or encrypt reasoning and check it, some models refuse a turn with calls and without the text of its
reasoning, and Gemini signs the texts of responses.
"""

import re
from functools import lru_cache
from typing import Final

from providers.target import Target

# These vendors check the signatures of reasoning.
_SIGNING: Final = frozenset(
    {"anthropic", "anthropic_vertex", "bedrock", "bedrock_anthropic", "bedrock_invoke", "gemini"}
)
_SIGNING_PROFILES: Final = frozenset({"openrouter"})

_WANTS_TEXT: Final = re.compile(r"deepseek|kimi", re.IGNORECASE)
"""Models that refuse a turn with calls and without `reasoning_content` while they reason (DeepSeek V4, Kimi
k2-thinking, k2.5 and newer): "The `reasoning_content` in the thinking mode must be passed back to the API." """

_GEMINI: Final = "gemini"
_OPENROUTER: Final = "openrouter"
"""The profile of a vendor that has Gemini's models among others."""

_OLDER: Final = re.compile(r"gemini-[12](?![0-9])|gemma|learnlm")
"""Models that sign nothing, or only their calls, so that no signature of their texts is looked up."""

_HOOK: Final = "signed_calls"
"""The hook of profiles that return signatures in Google's field of OpenAI's API."""


def wants_signatures(target: Target) -> bool:
    """Return whether the deployment signs or encrypts its model's reasoning, and needs it back in that form."""
    if target.profile.dialect in _SIGNING or target.profile.name in _SIGNING_PROFILES:
        return True
    api = target.profile.for_model(*target.model_names).responses
    return api is not None and api.when not in ("never", "hosted")


def wants_text(target: Target) -> bool:
    """Return whether the deployment's model refuses a turn with calls and without the text of its reasoning."""
    if not _WANTS_TEXT.search(target.model_names[0]):
        return False
    return bool(target.profile.for_model(*target.model_names).reasoning_members)


def signs_texts(target: Target) -> bool:
    """Return whether the deployment may sign the text of a response."""
    profile, model = target.profile, target.model_names[0].lower()
    if _OLDER.search(model) or (profile.name == _OPENROUTER and _GEMINI not in model):
        return False
    return profile.name == _OPENROUTER or profile.dialect == _GEMINI or _HOOK in profile.hooks


@lru_cache(maxsize=1024)
def wants_reasoning_back(target: Target) -> bool:
    """Return whether any reasoning of the deployment's responses is stored, and put back into requests to it."""
    return wants_signatures(target) or wants_text(target) or signs_texts(target)
