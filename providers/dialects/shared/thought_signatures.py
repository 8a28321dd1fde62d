"""Ids of Gemini's function calls, and the thought signatures that travel in them.

OpenAI's clients keep a call's id but no unknown members, and the vendor refuses a conversation whose calls lost their
signatures; so the id carries them. The characters are those that other vendors allow in ids, and the mark is the one
LiteLLM uses, so that conversations may move between gateways.

Sources: "Thought signatures" pages of the Gemini API and of Vertex AI, November 2026.
"""

import base64
import hashlib
import re

MARK = "__thought__"
"""Separates an id from the signature of its call."""

TEXT_MARK = "__said__"
"""Separates an id from the signature of the text before its call, where older models put it."""

SKIPPED = base64.b64encode(b"skip_thought_signature_validator").decode()
"""The signature that the vendor documents for calls that its model did not make."""

_SIGNATURE = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_TO_ID, _FROM_ID = str.maketrans("+/", "-_"), str.maketrans("-_", "+/")


def pack_call_id(call_id: str, signature: str | None, text_signature: str | None = None) -> str:
    """Return an id for the client that carries the call's own signature, or else that of the text before it."""
    if signature:
        return call_id + MARK + signature.translate(_TO_ID).rstrip("=")
    return call_id + TEXT_MARK + text_signature.translate(_TO_ID).rstrip("=") if text_signature else call_id


def unpack_call_id(given: str) -> tuple[str, str | None, str | None]:
    """Return the id, the call's signature and that of the text before it; other vendors' ids have no signatures."""
    for mark in (MARK, TEXT_MARK):
        own, found, rest = given.partition(mark)
        if found and _SIGNATURE.fullmatch(rest):
            padded = rest.rstrip("=").translate(_FROM_ID)
            padded += "=" * (-len(padded) % 4)
            return (own, padded, None) if mark == MARK else (own, None, padded)
    return given, None, None


def make_call_id(answer: str, candidate: int, number: int, name: str, arguments: bytes) -> str:
    """Return an id for a call that has none; the same answer gives the same ids, whole or streamed."""
    parts = b"\0".join([answer.encode(), b"%d" % candidate, b"%d" % number, name.encode(), arguments])
    return f"call_{hashlib.sha256(parts).hexdigest()[:24]}"
