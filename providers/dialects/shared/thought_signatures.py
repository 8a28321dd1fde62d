"""Ids of Gemini's function calls, the thought signatures that travel in them, and those that a turn brings besides.

OpenAI's clients keep a call's id but no unknown members, and the vendor refuses a conversation whose calls lost their
signatures; so the id carries them. The characters are those that other vendors allow in ids, and the mark is the one
LiteLLM uses, so that conversations may move between gateways. The Gemini API and Vertex AI refuse each other's
signatures, so the id also says which of them made it.

Sources: "Thought signatures" pages of the Gemini API and of Vertex AI; pydantic-ai 2.68.0 on signatures of the other
service, November 2026.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Literal, NamedTuple

from providers.conversation import GEMINI_FORMAT, Part, RedactedThinking, Thinking, ToolUse
from providers.frozen_record import record

MARK = "__thought__"
"""Separates an id from the signature of its call."""

TEXT_MARK = "__said__"
"""Separates an id from the signature of the text before its call, where older models put it."""

MARKS = "__"
"""The beginning of both marks. An id without it carries nothing."""

SKIPPED = base64.b64encode(b"skip_thought_signature_validator").decode()
"""The signature that the vendor documents for calls that its model did not make."""

_GENERATION = re.compile(r"(?:^|[/_-])gemini-(\d+)")

Service = Literal["studio", "vertex"]
"""The services of Google that sign: the Gemini API, and Vertex AI."""

_OF_VERTEX = "vertex:"
_SERVICES: tuple[Service, ...] = ("studio", "vertex")
_SIGNATURE = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_TO_ID, _FROM_ID = str.maketrans("+/", "-_"), str.maketrans("-_", "+/")


class SignedId(NamedTuple):
    """What an id carries: the vendor's own id, the call's signature, that of the text before it, and who signed."""

    id: str
    signature: str | None = None
    text_signature: str | None = None
    service: Service | None = None


def is_modern(*names: str) -> bool:
    """Return whether a model of these names is of generation 3 or later, which demands ids and signatures of its calls.

    Names without a generation (`gemini-flash-latest`, tuned models) count as the newest.
    """
    found = next((match for name in names if (match := _GENERATION.search(name))), None)
    return found is None or int(found[1]) >= 3


def pack_call_id(
    call_id: str, signature: str | None, text_signature: str | None = None, service: Service | None = None
) -> str:
    """Return an id for the client that carries the call's own signature, or else that of the text before it."""
    mark, carried = (MARK, signature) if signature else (TEXT_MARK, text_signature)
    if not carried:
        return call_id
    origin = f"__{service}" if service else ""
    return call_id + origin + mark + carried.translate(_TO_ID).rstrip("=")


def unpack_call_id(given: str) -> SignedId:
    """Return what an id carries; other vendors' ids have no signatures."""
    if MARKS not in given:
        return SignedId(given)
    for mark in (MARK, TEXT_MARK):
        own, found, rest = given.partition(mark)
        if found and _SIGNATURE.fullmatch(rest) and (signature := fit_signature(rest)):
            service = next((one for one in _SERVICES if own.endswith(f"__{one}")), None)
            own = own.removesuffix(f"__{service}")
            return SignedId(own, signature, None, service) if mark == MARK else SignedId(own, None, signature, service)
    return SignedId(given)


def fit_signature(given: str | None) -> str | None:
    """Return a signature in the base64 that the vendor reads; None for text that cannot be one."""
    if not given or not _SIGNATURE.fullmatch(given):
        return None
    bare = given.rstrip("=").translate(_FROM_ID)
    return None if len(bare) % 4 == 1 else bare + "=" * (-len(bare) % 4)


def mark_service(signature: str, service: Service | None) -> str:
    """Return the signature of a text for the client; those of Vertex AI say so, since they travel without an id."""
    return _OF_VERTEX + signature if service == "vertex" else signature


def text_signature_for(service: Service, given: str | None) -> str | None:
    """Return the signature of a text as a service takes it; None for one of the other service."""
    signed_by_vertex = given is not None and given.startswith(_OF_VERTEX)
    if given is None or signed_by_vertex != (service == "vertex"):
        return None
    return fit_signature(given.removeprefix(_OF_VERTEX))


def make_call_id(answer: str, candidate: int, number: int, name: str, arguments: bytes) -> str:
    """Return an id for a call that has none; the same answer gives the same ids, whole or streamed."""
    parts = b"\0".join([answer.encode(), b"%d" % candidate, b"%d" % number, name.encode(), arguments])
    return f"call_{hashlib.sha256(parts).hexdigest()[:24]}"


@record
class TurnSignatures:
    """The signatures that one turn of the model brought, without the ones in the ids of its calls: by call, of its
    text, and `loose` ones that name neither. `left_out` means that there was further reasoning."""

    of_calls: dict[str, str] = field(default_factory=dict)
    of_text: str | None = None
    loose: Sequence[str] = ()
    left_out: bool = False

    @property
    def none(self) -> bool:
        """Whether there are none."""
        return not (self.of_calls or self.of_text or self.loose)


NO_SIGNATURES = TurnSignatures()


def turn_signatures(
    service: Service, parts: Iterable[Part], calls: Iterable[ToolUse], text_signature: str | None = None
) -> TurnSignatures:
    """Return the signatures that a service takes of a turn with this thinking among its `parts`, and these calls."""
    thoughts = [part for part in parts if isinstance(part, Thinking | RedactedThinking)]
    if not thoughts and text_signature is None:
        return NO_SIGNATURES
    of_calls: dict[str, str] = {}
    loose: list[str] = []
    left_out = False
    ids = {own for call in calls for own in (call.id, unpack_call_id(call.id).id)}
    for thought in thoughts:
        match thought:
            case RedactedThinking(data, whose, call_id) if whose == GEMINI_FORMAT:
                if call_id in ids and (signature := fit_signature(data)):
                    of_calls[str(call_id)] = signature
                elif signature := text_signature_for(service, data):
                    loose.append(signature)
            case Thinking(_, given, whose) if whose == GEMINI_FORMAT and given:
                if signature := text_signature_for(service, given):
                    loose.append(signature)
            case _:
                left_out = True
    return TurnSignatures(of_calls, text_signature_for(service, text_signature), loose, left_out)
