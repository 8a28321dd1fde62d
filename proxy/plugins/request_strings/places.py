"""The objects of the APIs in which some strings are not texts. The strings are recognised by their place and form,
never by the name of a key alone.

An id or a signature with spaces or unusual characters is shown like any text. Sources: OpenAI OpenAPI 2.3.0
`ChatCompletionRequestMessage`, `InputItem`; `anthropic` 2.12.0 `ContentBlockParam`; Gemini's thought signatures in
OpenAI's shape (`extra_content.google`), November 2026.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from proxy.plugins.request_strings.media_texts import is_sound_uri

Judge = Callable[[str, Mapping[str, object]], bool]
"""Returns whether a string in a field of this object is hidden from guards."""

TypeOf = Callable[[Mapping[str, object]], str | None]
"""Returns the media type of the bare base64 in an object. It is empty if the type is unknown, and `None` if there is
no base64."""

_ID: Final = re.compile(r"[A-Za-z0-9_.:|/+=~@-]{1,256}")
_SEAL: Final = re.compile(r"[A-Za-z0-9_.:/+=-]{64,}")
_DIGEST: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Fa-f]{32,128}")
_FINGERPRINT: Final = re.compile(r"(?:fp_)?[0-9a-f]{8,64}|b[0-9]{1,8}-[0-9a-f]{7,40}|fp_ollama")
"""The fingerprints of OpenAI, llama.cpp and Ollama."""

_LONGEST: Final = 512
_LABELS: Final = re.compile(r"[A-Za-z_.:-]{0,64}")
_SEALED: Final = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning.text", "reasoning.summary", "reasoning.encrypted"}
    | {"compaction", "web_search_result", "function", "custom"}
)
"""Types of objects with signed or encrypted vendor data."""


@dataclass(frozen=True, slots=True)
class Place:
    """The rules for a kind of object. `unseen` has, by key, the tests for hidden strings. `encoded` has, by key, the
    type of bare base64. `below` has, by key, the kinds of nested objects; all others are FREE."""

    unseen: Mapping[str, Judge] = field(default_factory=dict)
    encoded: Mapping[str, TypeOf] = field(default_factory=dict)
    below: Mapping[str, str] = field(default_factory=dict)


def _is_id(value: str, holder: Mapping[str, object]) -> bool:
    return _ID.fullmatch(value) is not None


def _is_seal(value: str, holder: Mapping[str, object]) -> bool:
    return _SEAL.fullmatch(value) is not None and holder.get("type", "thinking") in _SEALED


def _is_digest(value: str, holder: Mapping[str, object]) -> bool:
    """Return whether an identifier consists of digests and UUIDs with labels of letters between them. Their digits
    could match a guard's pattern only by chance."""
    rest, found = _DIGEST.subn("", value[:_LONGEST])
    return found > 0 and len(value) <= _LONGEST and _LABELS.fullmatch(rest) is not None


def _is_typed_seal(value: str, holder: Mapping[str, object]) -> bool:
    return "type" in holder and _is_seal(value, holder)


def is_id(value: str) -> bool:
    """Return whether a string has the form of an id, or of a signature, which some vendors put into an id."""
    return (_ID.fullmatch(value) or _SEAL.fullmatch(value)) is not None


def is_fingerprint(value: str) -> bool:
    """Return whether a string has the form of a system fingerprint."""
    return _FINGERPRINT.fullmatch(value) is not None


def _always(value: str, holder: Mapping[str, object]) -> bool:
    return True


def _is_sound(value: str, holder: Mapping[str, object]) -> bool:
    return is_sound_uri(value)


def _sound(holder: Mapping[str, object]) -> str:
    return "audio/wav"


def _file(holder: Mapping[str, object]) -> str:
    return ""


def _source(holder: Mapping[str, object]) -> str | None:
    named = holder.get("media_type", "")
    return named.lower() if holder.get("type") == "base64" and isinstance(named, str) else None


FREE: Final = "free"
OWN: Final = "answer"
"""The kind of a vendor's own fields of a response."""

_IDS: Final = dict.fromkeys(("id", "call_id", "tool_call_id", "tool_use_id", "item_id", "file_id"), _is_id)
_IDENTITIES: Final = dict.fromkeys(
    ("user", "safety_identifier", "prompt_cache_key", "prompt_cache_isolation_key"), _is_digest
)
_SEALS: Final = dict.fromkeys(
    ("signature", "data", "encrypted_content", "thought_signature", "reasoning_signature"), _is_seal
)
_MEDIA: Final = {"input_audio": "sound", "file": "file", "source": "source"}

PLACES: Final[Mapping[str, Place]] = {
    FREE: Place(),
    "message": Place(
        {**_IDS, "reasoning_signature": _is_seal},
        below={
            "content": "part",
            "tool_calls": "call",
            "reasoning_details": "part",
            "thinking_blocks": "part",
            "audio": "reference",
            "extra_content": "extra",
        },
    ),
    "part": Place(
        {**_IDS, **_SEALS},
        {"file_data": _file},
        {**_MEDIA, "content": "part", "output": "part", "summary": "part", "extra_content": "extra"},
    ),
    "call": Place(_IDS, below={"extra_content": "extra", "function": "called"}),
    "called": Place(_SEALS),
    "extra": Place(below={"google": "called"}),
    "reference": Place({"id": _is_id}),
    "sound": Place(encoded={"data": _sound}),
    "file": Place({"file_id": _is_id}, {"file_data": _file}),
    "source": Place({"file_id": _is_id}, {"data": _source}),
    "identity": Place(_IDENTITIES),
    "owner": Place({"user_id": _is_digest}),
    "native body": Place(
        {"model": _always, **_IDENTITIES},
        below={"messages": "part", "system": "part", "input": "part", "metadata": "owner"},
    ),
    "passed body": Place({"model": _always, **_IDENTITIES}, below={"input": "part"}),
    OWN: Place({**dict.fromkeys(_IDS, _is_digest), **dict.fromkeys(_SEALS, _is_typed_seal)}, below=_MEDIA),
    "spoken": Place({"id": _is_id}, {"data": _sound}),
    "native answer": Place(
        {"model": _always, "id": _is_id, **_IDENTITIES}, below={"content": "part", "output": "part"}
    ),
    "form": Place({"model": _always, "file": _always, "known_speaker_references[]": _is_sound}),
}
"""The kinds of objects, by name. A part is also a block of the Messages API and an item of the Responses API."""
