"""Recognises a vendor's refusal of sealed reasoning from another vendor, account, region, model or conversation.

Clients send a model's reasoning back encrypted or signed, and only the vendor that sealed it can read it. After a
fallback, or a change of deployment or key, a client has reasoning that the current vendor cannot verify, and sends it
in each further request.

Sources: messages quoted in public issue threads, November 2026: openai/codex 8145, openai/openai-agents-python 2063
(Azure), Wei-Shaw/sub2api 4535 and chenyme/grok2api 688 (xAI), anthropics/claude-code 10627, 56708 and 63267,
anomalyco/opencode 48637 (bound conversations), can1357/oh-my-pi 10486 (Bedrock), google-gemini/gemini-cli 13467,
decolua/9router 301 (Vertex AI), lbjlaq/Antigravity-Manager 3342.
"""

import re
from typing import Final

from providers.failure import Failure, FailureKind
from providers.vendor_text.late_pattern import LatePattern

_CODES: Final = frozenset({"invalid_encrypted_content"})
"""The error codes of such refusals: OpenAI's code, which Azure also sends in some cases."""

_WORDINGS: Final = (
    # OpenAI, and Azure without a code: "The encrypted content gAAA...DQ== could not be verified. Reason: Encrypted
    # content could not be decrypted or parsed."
    r"\bencrypted[ _]content\b.{0,200}?\bcould not be (?:verified|decrypted|parsed|decoded)",
    # xAI: "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from
    # a previous response."
    r"\bcould not (?:decrypt|decode|verify|parse) (?:the )?(?:provided )?(?:encrypted[ _]content|compaction blob)",
    # Anthropic, Bedrock and Vertex AI: "messages.1.content.0: Invalid `signature` in `thinking` block"
    r"\binvalid\W{1,3}(?:signature|data)\W{1,3}in\s+\W?(?:redacted_)?thinking\b",
    # Bedrock's message for an empty signature.
    r"\bthinking\.signature\b\W{1,3}field required|\bredacted_thinking\.data\b\W{1,3}field required",
    # Anthropic: "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
    r"\bredacted_thinking\W{1,3}blocks?\b.{0,80}?\b(?:cannot be modified|must match the parameters)",
    # Google: "Corrupted thought signature.", "Invalid thought signature.", "Thought signature is not valid".
    r"\b(?:corrupted|invalid)\W{1,3}thought[ _]?signature",
    r"\bthought[ _]?signature\W{0,3}\s*(?:is )?(?:not valid|invalid|corrupted)",
    # Google, if the signature is not base64: "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES),
    # Base64 decoding failed".
    r"\bthought_?signature'?\W{1,3}\(TYPE_BYTES\)",
)
"""The wordings of each vendor. A message may quote the client's text, so a match must cause nothing more than one call
without the reasoning."""

_PATTERN: Final = LatePattern("|".join(_WORDINGS), re.IGNORECASE | re.DOTALL)

_REQUEST_KINDS: Final = frozenset({FailureKind.INVALID_REQUEST, FailureKind.UNSUPPORTED})


def refuses_seal(failure: Failure) -> bool:
    """Return whether a vendor refuses a request because it cannot verify or decrypt reasoning in it."""
    if failure.kind not in _REQUEST_KINDS:
        return False
    return failure.code in _CODES or _PATTERN.search(f"{failure.message}\n{failure.said}") is not None
