"""Packs Gemini's thought signatures into the ids of function calls, and reads the signatures of a turn.

OpenAI's clients send a call's id back but no unknown fields, and Gemini refuses a conversation whose calls lost their
signatures. Therefore the id carries the signature. It uses characters that other vendors allow in ids, and the same
mark as LiteLLM, so that conversations can move between gateways. The Gemini API and Vertex AI refuse each other's
signatures, so the id also names the service that made the signature.

Sources: "Thought signatures" pages of the Gemini API and of Vertex AI; pydantic-ai 2.68.0 for signatures of the other
service, November 2026.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Literal, NamedTuple

from providers.conversation import GEMINI_FORMAT, Part, Reasoning, RedactedReasoning, ToolUse
from providers.frozen_record import frozen

MARK = "__thought__"
"""The separator between an id and the signature of its call."""

TEXT_MARK = "__said__"
"""The separator between an id and the signature of the text before its call. Older models sign that text."""

MARKS = "__"
"""The beginning of both separators. An id without it carries no signature."""

SKIP_SIGNATURE = base64.b64encode(b"skip_thought_signature_validator").decode()
"""The placeholder signature that Google documents for calls that its model did not make."""

_GENERATION = re.compile(r"(?:^|[/_-])gemini-(\d+)")

Service = Literal["studio", "vertex"]
"""Google's services that sign: the Gemini API (`studio`) and Vertex AI."""

_VERTEX_PREFIX = "vertex:"
_SERVICES: tuple[Service, ...] = ("studio", "vertex")
_SIGNATURE = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_TO_ID, _FROM_ID = str.maketrans("+/", "-_"), str.maketrans("-_", "+/")


class SignedId(NamedTuple):
    """The contents of an id: the vendor's own id, the call's signature, the signature of the text before the call, and
    the service that signed."""

    id: str
    signature: str | None = None
    text_signature: str | None = None
    service: Service | None = None


def is_modern(*names: str) -> bool:
    """Return whether a model of these names is of generation 3 or later, which requires ids and signatures of its
    calls.

    Names without a generation (`gemini-flash-latest`, tuned models) count as the newest generation.
    """
    found = next((match for name in names if (match := _GENERATION.search(name))), None)
    return found is None or int(found[1]) >= 3


def pack_call_id(
    call_id: str, signature: str | None, text_signature: str | None = None, service: Service | None = None
) -> str:
    """Return an id for the client that carries the call's own signature, otherwise the signature of the text before the
    call."""
    mark, carried = (MARK, signature) if signature else (TEXT_MARK, text_signature)
    if not carried:
        return call_id
    origin = f"__{service}" if service else ""
    return call_id + origin + mark + carried.translate(_TO_ID).rstrip("=")


def unpack_call_id(given: str) -> SignedId:
    """Return the contents of an id. Other vendors' ids have no signatures."""
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
    """Return a signature in the base64 form that Google reads; `None` for a text that cannot be a signature."""
    if not given or not _SIGNATURE.fullmatch(given):
        return None
    bare = given.rstrip("=").translate(_FROM_ID)
    return None if len(bare) % 4 == 1 else bare + "=" * (-len(bare) % 4)


def mark_service(signature: str, service: Service | None) -> str:
    """Return the signature of a text for the client. A signature of Vertex AI gets a prefix that names the service,
    since a text has no id that could name it."""
    return _VERTEX_PREFIX + signature if service == "vertex" else signature


def text_signature_for(service: Service, given: str | None) -> str | None:
    """Return the signature of a text in the form that a service accepts; `None` for a signature of the other
    service."""
    signed_by_vertex = given is not None and given.startswith(_VERTEX_PREFIX)
    if given is None or signed_by_vertex != (service == "vertex"):
        return None
    return fit_signature(given.removeprefix(_VERTEX_PREFIX))


def make_call_id(answer: str, candidate: int, number: int, name: str, arguments: bytes) -> str:
    """Return an id for a call without an id. The same response gives the same ids, whether it is streamed or not."""
    parts = b"\0".join([answer.encode(), b"%d" % candidate, b"%d" % number, name.encode(), arguments])
    return f"call_{hashlib.sha256(parts).hexdigest()[:24]}"


@frozen
class TurnSignatures:
    """The signatures of one assistant turn, except the signatures in the ids of its calls.

    `of_calls` are by call id. `of_text` is the signature of the text. `loose` signatures belong to no known call or
    text. `left_out` is true if the turn has other reasoning, which the service does not read.
    """

    of_calls: dict[str, str] = field(default_factory=dict)
    of_text: str | None = None
    loose: Sequence[str] = ()
    left_out: bool = False

    @property
    def none(self) -> bool:
        """Whether there are no signatures."""
        return not (self.of_calls or self.of_text or self.loose)


NO_SIGNATURES = TurnSignatures()


def turn_signatures(
    service: Service, parts: Iterable[Part], calls: Iterable[ToolUse], text_signature: str | None = None
) -> TurnSignatures:
    """Return the signatures of a turn that a service accepts. `parts` holds the turn's reasoning, `calls` its calls."""
    reasoning = [part for part in parts if isinstance(part, Reasoning | RedactedReasoning)]
    if not reasoning and text_signature is None:
        return NO_SIGNATURES
    of_calls: dict[str, str] = {}
    loose: list[str] = []
    left_out = False
    ids = {own for call in calls for own in (call.id, unpack_call_id(call.id).id)}
    for reasoning_part in reasoning:
        match reasoning_part:
            case RedactedReasoning(data, signature_format, call_id) if signature_format == GEMINI_FORMAT:
                if call_id in ids and (signature := fit_signature(data)):
                    of_calls[str(call_id)] = signature
                elif signature := text_signature_for(service, data):
                    loose.append(signature)
            case Reasoning(_, given, signature_format) if signature_format == GEMINI_FORMAT and given:
                if signature := text_signature_for(service, given):
                    loose.append(signature)
            case _:
                left_out = True
    return TurnSignatures(of_calls, text_signature_for(service, text_signature), loose, left_out)
