"""What the native dialects share in reading a conversation: OpenAI-shaped messages, their images and their calls.

Never a vendor's form of a turn.

Shapes: OpenAI OpenAPI 2.3.0 `ChatCompletionRequestMessage`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import orjson

from providers.failure import Refusal
from providers.unified import JsonObject, JsonValue

# Besides these, a member that is null or empty asks for nothing. Annotations are about an answer and not part of it.
_MEMBERS = frozenset(
    {"role", "content", "refusal", "tool_calls", "tool_call_id", "reasoning", "reasoning_content", "annotations"}
)


def says_nothing(role: JsonValue, name: str, member: JsonValue) -> bool:
    """Whether a member that no vendor has a place for may be left out: the name of a tool message repeats that of the
    call it answers, and what Google has beside a text, its signature, nobody else can read."""
    if name == "name":
        return role == "tool"
    googles = isinstance(member, dict) and member.keys() <= {"google"}
    return name == "extra_content" and role == "assistant" and googles


@dataclass(frozen=True, slots=True)
class Called:
    """A call that a message of the model holds: the client's id and name, and what the function was given."""

    id: str
    name: str
    given: JsonObject


class Walk:
    """One conversation being read. `param` is the client's field that it came in."""

    __slots__ = ("_position", "param")

    def __init__(self, param: str) -> None:
        self.param = param
        self._position = 0

    def each(self, messages: Iterable[JsonValue]) -> Iterator[tuple[str, JsonObject]]:
        """Role and message, in order. Raises Refusal for one that is none, or that says more than can be said."""
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
        """The refusal of the message that is being read."""
        where = f"messages[{self._position}]" if self.param == "messages" else f"'{self.param}'"
        return Refusal(self.param, f"{where} {reason}.", code)

    def no_role(self, role: str) -> Refusal:
        """The refusal of a role."""
        return self.refusal(f"has the role '{role}', which cannot be translated")

    def no_part(self, kind: JsonValue) -> Refusal:
        """The refusal of a kind of content."""
        return self.refusal(f"has a part of type '{kind}', which cannot be translated")

    def _check_members(self, role: str, message: JsonObject) -> None:
        for name, member in message.items():
            if member and name not in _MEMBERS and not says_nothing(role, name, member):
                raise self.refusal(f"has the member '{name}', which the vendor has no place for")

    def called(self, call: JsonValue) -> Called:
        """A function's call. Raises Refusal for another kind and for arguments that are no object."""
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(function, dict):
            raise self.refusal("has a tool call that is not a function's")
        given = arguments_of(function)
        if given is None:
            raise self.refusal(NO_ARGUMENTS, "invalid_value")
        return Called(str(call.get("id")), str(function.get("name")), given)

    def image_address(self, part: JsonObject) -> str:
        """Where the image of a part is. Raises Refusal."""
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        if not isinstance(url, str):
            raise self.refusal("has an image without an address", "invalid_value")
        return url


NO_ARGUMENTS = "has a tool call whose 'arguments' are not a JSON object, or are nested too deeply"

MAX_DEPTH = 64
"""Levels of a call's arguments, as many as a client's whole request may have."""


def arguments_of(function: JsonObject) -> JsonObject | None:
    """What a call's function was given; None where that is no JSON object of bounded depth."""
    arguments = function.get("arguments")
    try:
        given: JsonValue = orjson.loads(arguments) if isinstance(arguments, str) and arguments else {}
    except orjson.JSONDecodeError:
        return None
    return given if isinstance(given, dict) and not _deeper(given) else None


def _deeper(value: JsonObject) -> bool:
    level: list[JsonObject | list[JsonValue]] = [value]
    for _ in range(MAX_DEPTH):
        held = [each for holder in level for each in (holder.values() if isinstance(holder, dict) else holder)]
        level = [each for each in held if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def data_uri(url: str) -> tuple[str, str]:
    """Media type and base64 data; empty when it is something else."""
    head, _, data = url.partition(",")
    scheme, _, rest = head.partition(":")
    media, *parameters = rest.split(";")
    good = scheme.lower() == "data" and data and parameters[-1:] == ["base64"]
    return (media.lower(), data) if good else ("", "")
