"""Ids of Gemini's function calls, and the thought signatures that travel in them.

Never a call itself. OpenAI's clients keep a call's id and nothing else that they do not know, and the vendor refuses a
conversation whose calls lost their signatures: so the id carries them. The characters are those that other vendors
allow in ids, and the mark is the one LiteLLM uses, so that conversations may move.

Sources: "Thought signatures" pages of the Gemini API and of Vertex AI, November 2026.
"""

import base64
import hashlib
import re

MARK = "__thought__"
"""Between an id and the signature of its call."""

SAID_MARK = "__said__"
"""Between an id and the signature of the text before its call, which older models put there."""

SKIPPED = base64.b64encode(b"skip_thought_signature_validator").decode()
"""What the vendor documents for calls that it did not make itself."""

_SIGNATURE = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_TO_ID, _FROM_ID = str.maketrans("+/", "-_"), str.maketrans("-_", "+/")


def packed(call_id: str, signature: str | None, said: str | None = None) -> str:
    """An id for the client, with the call's own signature in it or else with that of the text before."""
    if signature:
        return call_id + MARK + signature.translate(_TO_ID).rstrip("=")
    return call_id + SAID_MARK + said.translate(_TO_ID).rstrip("=") if said else call_id


def unpacked(given: str) -> tuple[str, str | None, str | None]:
    """The id, the call's signature and that of the text before it; a foreign id is itself and has none."""
    for mark in (MARK, SAID_MARK):
        own, found, rest = given.partition(mark)
        if found and _SIGNATURE.fullmatch(rest):
            whole = rest.rstrip("=").translate(_FROM_ID)
            whole += "=" * (-len(whole) % 4)
            return (own, whole, None) if mark == MARK else (own, None, whole)
    return given, None, None


def made_id(answer: str, candidate: int, number: int, name: str, arguments: bytes) -> str:
    """An id for a call that came without one; the same answer gives the same ids, whole or streamed."""
    told = b"\0".join([answer.encode(), b"%d" % candidate, b"%d" % number, name.encode(), arguments])
    return f"call_{hashlib.sha256(told).hexdigest()[:24]}"
