"""Recognises a vendor's refusal that concerns the model. Another target may accept such a request.

The patterns below are wordings that several vendors share, since most vendors pass on the messages of their models. A
wording of a single vendor is in its profile, as a pattern of the kind `unsupported`. A message may quote the client's
text, so a match must cause nothing more than a call of the next target.

Sources, November 2026, as quoted in public issue threads: OpenAI ("Unsupported parameter: 'temperature' is not
supported with this model.", "Function tools with reasoning_effort are not supported for gpt-5.6 in
/v1/chat/completions"), Anthropic ("This model does not support assistant message prefill."), AWS ("This model doesn't
support tool use."), Google ("Function calling is not enabled for models/…"), Moonshot ("only 1 is allowed for this
model"), xAI ("Argument not supported on this model"), Ollama ("… does not support tools") and vLLM ("… is not a
multimodal model").
"""

import re
from dataclasses import replace
from typing import Final

from providers.failure import Failure, FailureKind

_NOT: Final = r"(?:(?:does|do|is|are) not|(?:does|do|is|are)n['\u2019]?t|cannot)"

_ABOUT_MODEL: Final = re.compile(
    rf"\b{_NOT} support\b"
    rf"|\b{_NOT} (?:currently )?(?:supported|available|allowed|enabled|compatible|permitted)\b[^.;]{{0,40}}"
    r"\b(?:for|with|by|on|in) (?:this|the|your|that|model|models/)"
    rf"|\b{_NOT} supported for \S{{1,80}} in\b"
    r"|\bnot supported (?:for|with|by|on|in) (?:this|the|model)\b"
    r"|\b(?:for|with|by|on) this model\b"
    r"|\bthis model (?:only|always) \w"
    r"|\bonly supported (?:by|on|for|with) (?:certain|some|other|specific)\b"
    r"|\bis not a (?:multimodal|chat|reasoning|vision|thinking) model\b"
    r"|\bunrecognized request argument supplied: reasoning_effort\b"
    r"|\brequires --enable-auto-tool-choice\b",
    re.IGNORECASE,
)


_ABOUT_EFFORT: Final = re.compile(
    rf"\b{_NOT} support (?:thinking|reasoning|the effort parameter)\b"
    r"|\b(?:reasoning_effort|reasoning\.effort|thinking|think)\W+is not supported\b"
    r"|\bunrecognized request argument supplied: reasoning_effort\b",
    re.IGNORECASE,
)


_ABOUT_EARLIER_REASONING: Final = re.compile(
    r"\breasoning input is not enabled\b"
    r"|\bmessages\W{0,3}\d+\S{0,40}\b(?:reasoning\w*|thinking)\b.{0,80}\bnot (?:supported|permitted|allowed)\b"
    r"|\bmessages\W{0,3}\d+\S{0,40}\b(?:reasoning\w*|thinking)\b.{0,80}\b(?:unsupported|unknown|extra inputs)\b",
    re.IGNORECASE | re.DOTALL,
)
"""Wordings by which vendors refuse the reasoning of earlier turns, as quoted in public issue threads, November 2026:
Mistral ("Reasoning input is not enabled for this model", mistralai/mistral-vibe 758), Groq ("messages[1].reasoning:
reasoning is not supported with this model", vercel/ai 8057)."""


def refuses_earlier_reasoning(failure: Failure) -> bool:
    """Return whether a vendor refuses a request because of the reasoning in its earlier turns."""
    about_request = failure.kind in (FailureKind.INVALID_REQUEST, FailureKind.UNSUPPORTED)
    return about_request and _ABOUT_EARLIER_REASONING.search(f"{failure.message}\n{failure.said}") is not None


def refuses_effort(failure: Failure) -> bool:
    """Return whether a vendor refuses a request because its model does not reason."""
    about_request = failure.kind in (FailureKind.INVALID_REQUEST, FailureKind.UNSUPPORTED) and failure.overflow is None
    return about_request and _ABOUT_EFFORT.search(failure.message) is not None


def if_model_refuses(failure: Failure) -> Failure:
    """Return the failure of an invalid request with the kind UNSUPPORTED if its message says that the model refuses it.
    A too large token limit stays the client's error, because the client needs the number in the message."""
    if failure.kind is not FailureKind.INVALID_REQUEST or failure.overflow is not None:
        return failure
    if not _ABOUT_MODEL.search(failure.message):
        return failure
    return replace(failure, kind=FailureKind.UNSUPPORTED)
