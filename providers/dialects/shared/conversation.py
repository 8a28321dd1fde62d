"""Reading of a conversation's OpenAI-shaped messages, their images and their calls, for dialects of another shape.

Shapes: OpenAI OpenAPI 2.3.0 `ChatCompletionRequestMessage`.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import orjson

from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue, nests_deeper

# Any other member is refused unless it is null or empty. Reasoning of earlier turns is not sent: vendors take it only
# with their own signature. Annotations describe an answer and are no part of it.
_MEMBERS = frozenset(
    {"role", "content", "refusal", "tool_calls", "tool_call_id", "reasoning", "reasoning_content", "annotations"}
)


def says_nothing(role: JsonValue, name: str, member: JsonValue) -> bool:
    """Return whether a member may be left out for vendors that have no place for it: the name of a tool message, which
    repeats that of the call it answers, and the signature of Google's texts, which only Google reads."""
    if name == "name":
        return role == "tool"
    googles = isinstance(member, dict) and member.keys() <= {"google"}
    return name == "extra_content" and role == "assistant" and googles


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function call in a message of the model: the client's id and name for it, and its arguments."""

    id: str
    name: str
    given: JsonObject


class Walk:
    """Reader of one conversation; `param` is the client's field that holds it."""

    __slots__ = ("_position", "param")

    def __init__(self, param: str) -> None:
        self.param = param
        self._position = 0

    def each(self, messages: Iterable[JsonValue]) -> Iterator[tuple[str, JsonObject]]:
        """Yield role and message in order. Raises Refusal for no message and for a member that no vendor takes."""
        for position, message in enumerate(messages):
            self._position = position
            if not isinstance(message, dict):
                raise self.refusal("is not an object", "invalid_value")
            role = message.get("role")
            if not isinstance(role, str):
                raise self.refusal("has no role", "invalid_value")
            if len(message) > 2:
                self._check_members(role, message)
            yield role, message

    def refusal(self, reason: str, code: str = "unsupported_parameter") -> Refusal:
        """Return a refusal that names the message being read."""
        where = f"messages[{self._position}]" if self.param == "messages" else f"'{self.param}'"
        return Refusal(self.param, f"{where} {reason}.", code)

    def no_role(self, role: str) -> Refusal:
        """Return the refusal of a role."""
        return self.refusal(f"has the role '{role}', which cannot be translated")

    def no_part(self, kind: JsonValue) -> Refusal:
        """Return the refusal of a content part of a type."""
        return self.refusal(f"has a part of type '{kind}', which cannot be translated")

    def _check_members(self, role: str, message: JsonObject) -> None:
        for name, member in message.items():
            if member and name not in _MEMBERS and not says_nothing(role, name, member):
                raise self.refusal(f"has the member '{name}', which the vendor has no place for")

    def read_call(self, call: JsonValue) -> FunctionCall:
        """Return a function call. Raises Refusal for another kind of call and for arguments that are no object."""
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(function, dict):
            raise self.refusal("has a tool call that is not a function's")
        given = _arguments(function)
        if given is None:
            reason = "has a tool call whose 'arguments' are not a JSON object, or are nested too deeply"
            raise self.refusal(reason, "invalid_value")
        return FunctionCall(str(call.get("id")), str(function.get("name")), given)

    def image_address(self, part: JsonObject) -> str:
        """Return the URL of an image part. Raises Refusal where there is none."""
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        if not isinstance(url, str):
            raise self.refusal("has an image without an address", "invalid_value")
        return url


MAX_DEPTH = 64
"""Levels of a call's arguments, as many as a client's whole request may have."""


def _arguments(function: JsonObject) -> JsonObject | None:
    """Return a call's arguments; None where they are no JSON object of at most MAX_DEPTH levels."""
    arguments = function.get("arguments")
    try:
        given: JsonValue = orjson.loads(arguments) if isinstance(arguments, str) and arguments else {}
    except orjson.JSONDecodeError:
        return None
    return given if isinstance(given, dict) and not nests_deeper(given, MAX_DEPTH) else None


def fit_call_id(given: str, fits: re.Pattern[str]) -> str:
    """Return the id, or a digest of one that does not fit the vendor's pattern."""
    return given if fits.fullmatch(given) else f"call_{hashlib.sha256(given.encode()).hexdigest()[:32]}"


def data_uri(url: str) -> tuple[str, str]:
    """Return media type and base64 data of a data URI; two empty strings for anything else."""
    head, _, data = url.partition(",")
    scheme, _, rest = head.partition(":")
    media, *parameters = rest.split(";")
    good = scheme.lower() == "data" and data and parameters[-1:] == ["base64"]
    return (media.lower(), data) if good else ("", "")
