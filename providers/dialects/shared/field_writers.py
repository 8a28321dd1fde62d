"""Writers of single fields that several vendors' own APIs write alike, and the removal of cache markers for vendors
that do not accept them."""

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
"""By the profile's `verifies`: the fields whose effect the gateway checks in the response."""

MARKERS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Cache markers. They do not affect the content of the response."""


def without_markers(holder: JsonObject, profile: Profile, dropped: list[str]) -> JsonObject:
    """Return a part, call or tool without the cache markers that the vendor does not accept. Their names are added to
    `dropped`."""
    if holder.keys().isdisjoint(MARKERS):
        return holder
    refused = MARKERS - profile.takes
    dropped += [name for name in holder if name in refused]
    return {name: value for name, value in holder.items() if name not in refused}


def emulate_stop_string(draft: RequestBody, value: object) -> None:
    """Record that the gateway itself leaves the stop string in the text, if the request has stop strings."""
    if value and draft.params.get("stop"):
        draft.emulated.append(STOP_STRING)


def write_nothing(draft: RequestBody, value: object) -> None:
    """Write nothing, for a field that is honoured without being sent or is written with another field."""


def params_without_field(fields: Mapping[str, FieldWriter]) -> frozenset[str]:
    """Return the names of the fields for which `write_nothing` stands, which `put_fields` need not visit."""
    return frozenset(name for name, put in fields.items() if put is write_nothing)


def check_images(draft: RequestBody, value: object) -> None:
    """Check `images`, which are already parts of the prompt's message. Raises Refusal for a chat."""
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
    """Return a writer that sends `off` for a neutral value. If the field were left out, the server's own default would
    apply."""
    return lambda draft, value: draft.put(path, off if is_neutral(name, value) else value)


def sampled(put: FieldWriter, switch: str = "", on: object = None) -> FieldWriter:
    """Return a writer of a sampling setting, which is left out if the temperature is 0.

    `switch` is the path of the field that turns sampling on by the value `on`, empty if the engine has no such field.
    """

    def write(draft: RequestBody, value: object) -> None:
        if draft.params.get("temperature") != 0:
            put(draft, value)
            if switch:
                draft.put(switch, on)

    return write


LONGEST_IDS: Final[Mapping[str, int]] = {"user": 64, "prompt_cache_key": 64, "safety_identifier": 128}
"""The most characters of each id. Sources: "Invalid 'user': string too long. Expected a string with maximum length 64";
`openai` 3.52 `completion_create_params`."""

MOST_PAIRS, LONGEST_KEY, LONGEST_VALUE = 16, 64, 512
"""Limits of OpenAI's `metadata`, from the same source: the number of pairs, and the characters of a key and of a
value."""


def fitting_id(text: str, longest: int) -> str:
    """Return an opaque id of at most `longest` characters, which must be 64 or more. A longer id is replaced by its
    digest, which still distinguishes users or caches."""
    return text if len(text) <= longest else hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def short_id(put: FieldWriter, longest: int) -> FieldWriter:
    """Return a writer of an opaque id, shortened by `fitting_id`."""

    def write(draft: RequestBody, value: object) -> None:
        put(draft, fitting_id(str(value), longest))

    return write


def fitting_pairs(given: JsonObject, most: int, longest_key: int, longest_value: int) -> JsonObject:
    """Return the first `most` pairs of an object of texts that fit. A pair fits if its key has at most `longest_key`
    and its value at most `longest_value` characters."""

    def fits(key: str, value: object) -> bool:
        return 0 < len(key) <= longest_key and isinstance(value, str) and len(value) <= longest_value

    return dict(islice(((key, each) for key, each in given.items() if fits(key, each)), most))


def few_pairs(name: str, put: FieldWriter, most: int, longest_key: int, longest_value: int) -> FieldWriter:
    """Return a writer of an object of texts, limited by `fitting_pairs`. If pairs are left out, the field is reported
    as dropped."""

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
