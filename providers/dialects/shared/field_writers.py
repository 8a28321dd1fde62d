"""Writers of single fields that several vendors' own APIs spell alike, and cache markers, which parts and tools go
without if the vendor does not take them."""

import hashlib
from collections.abc import Mapping
from itertools import islice
from typing import Final

from providers.dialects.shared.request_body import FieldWriter, RequestBody
from providers.json_types import JsonObject
from providers.profile import Profile
from providers.request_fields import STOP_STRING, is_neutral
from providers.unified_request import ChatPrompt, LogprobsWanted

CHECKED_FIELDS = {False: frozenset[str](), True: frozenset({"guided", "response_format"})}
"""The fields whose effect the gateway checks in the answer, by the profile's `verifies`."""

MARKERS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Cache markers; they promise nothing about the answer."""


def without_markers(holder: JsonObject, profile: Profile, dropped: list[str]) -> JsonObject:
    """Return a part, call or tool without the cache markers that the vendor does not take, which go into `dropped`."""
    if holder.keys().isdisjoint(MARKERS):
        return holder
    refused = MARKERS - profile.takes
    dropped += [name for name in holder if name in refused]
    return {name: value for name, value in holder.items() if name not in refused}


def keep_stop(draft: RequestBody, value: object) -> None:
    """Note that the gateway keeps the stop string in the text, where there are stop strings."""
    if value and draft.params.get("stop"):
        draft.emulated.append(STOP_STRING)


def write_nothing(draft: RequestBody, value: object) -> None:
    """Write no member, for a field that is honoured without one or is written with another field."""


def params_without_field(fields: Mapping[str, FieldWriter]) -> frozenset[str]:
    """Return the names of the fields for which `write_nothing` stands, which `put_fields` need not visit."""
    return frozenset(name for name, put in fields.items() if put is write_nothing)


def check_images(draft: RequestBody, value: object) -> None:
    """Check `images`, which have become parts of the prompt's message. Raises Refusal beside a chat."""
    if (cell := draft.table["images"]).refused:
        raise draft.unsupported("images", cell.how)
    if isinstance(draft.request.prompt, ChatPrompt):
        raise draft.unsupported("images", "in a chat put images into the messages")


def above_zero(name: str, path: str, most: float | None = None) -> FieldWriter:
    """Return a writer of a number above 0 and at most `most`."""
    limit = "" if most is None else f" and at most {most:g}"

    def write(draft: RequestBody, value: object) -> None:
        if not isinstance(value, int | float) or not value > 0 or (most is not None and value > most):
            raise draft.invalid(name, f"must be above 0{limit}")
        draft.put(path, value)

    return write


def neutral_as(name: str, path: str, off: int) -> FieldWriter:
    """Return a writer that sends `off` for a neutral value: left out, the server's own default would apply."""
    return lambda draft, value: draft.put(path, off if is_neutral(name, value) else value)


def sampled(put: FieldWriter, switch: str = "", on: object = None) -> FieldWriter:
    """Return a writer of a sampling setting, which a temperature of 0 leaves out.

    `switch` is the path of the member that turns sampling on by the value `on`, where the engine has one.
    """

    def write(draft: RequestBody, value: object) -> None:
        if draft.params.get("temperature") != 0:
            put(draft, value)
            if switch:
                draft.put(switch, on)

    return write


LONGEST_IDS: Final[Mapping[str, int]] = {"user": 64, "prompt_cache_key": 64, "safety_identifier": 128}
"""Characters: "Invalid 'user': string too long. Expected a string with maximum length 64"; `openai` 3.52
`completion_create_params`."""

MOST_PAIRS, LONGEST_KEY, LONGEST_VALUE = 16, 64, 512
"""Bounds of OpenAI's `metadata`, by the same types."""


def fitting_id(text: str, longest: int) -> str:
    """Return an opaque id of at most `longest` characters, 64 or more: a longer one as its digest, which tells the same
    users, or the same caches, apart."""
    return text if len(text) <= longest else hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def short_id(put: FieldWriter, longest: int) -> FieldWriter:
    """Return a writer of an opaque id, see `fitting_id`."""

    def write(draft: RequestBody, value: object) -> None:
        put(draft, fitting_id(str(value), longest))

    return write


def fitting_pairs(given: JsonObject, most: int, longest_key: int, longest_value: int) -> JsonObject:
    """Return at most so many pairs of an object of texts, of keys and values of at most so many characters."""

    def fits(key: str, value: object) -> bool:
        return 0 < len(key) <= longest_key and isinstance(value, str) and len(value) <= longest_value

    return dict(islice(((key, each) for key, each in given.items() if fits(key, each)), most))


def few_pairs(name: str, put: FieldWriter, most: int, longest_key: int, longest_value: int) -> FieldWriter:
    """Return a writer of an object of texts that takes at most so many pairs, keys and values of at most so many
    characters. Pairs that do not fit are left out, and the field is named for it."""

    def write(draft: RequestBody, value: object) -> None:
        given = value if isinstance(value, dict) else {}
        if pairs := fitting_pairs(given, most, longest_key, longest_value):
            put(draft, pairs)
        if len(pairs) < len(given):
            draft.dropped.append(name)

    return write


def check_logprobs(draft: RequestBody, value: object, most: int | None = None) -> LogprobsWanted:
    """Return the value of `logprobs`. Raises Refusal for more than `most` alternatives."""
    if not isinstance(value, LogprobsWanted):
        raise TypeError(f"logprobs holds {type(value).__name__}")
    if most is not None and value.top > most:
        raise draft.invalid("logprobs", f"lists at most {most} tokens")
    return value
