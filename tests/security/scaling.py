"""Requests that are large along one axis at a time, and how they are parsed and prepared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from providers.emulation.plan_calls import plan_calls
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest
from proxy.surfaces.openai import OPENAI
from tests.providers.dialects.kit import target_of, user

Build = Callable[[int], JsonObject]

IMAGE = "data:image/png;base64,iVBORw0KGgo="
VENDOR = "https://vendor.example.com/v1"
TEXT_FILE = "data:text/plain;base64,aGk="


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis along which a request grows. `build` returns the fields that it adds at a size. `size` is the smaller of
    the two compared sizes."""

    name: str
    build: Build
    size: int
    chat: bool = True


def _chat(*messages: JsonValue) -> JsonObject:
    return {"messages": [*messages]}


def foreign(number: int) -> str:
    """Return a name that matches no vendor's pattern, and is replaced by the same name as all others of its kind."""
    return chr(0x4E00 + number // 20000) + chr(0x4E00 + number % 20000)


def _plain(number: int) -> str:
    return f"tool{number}"


def _call(identity: str, name: str, arguments: str = "{}") -> JsonObject:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def _result(identity: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": identity, "content": "ok"}


def _calling(*calls: JsonValue) -> JsonObject:
    return {"role": "assistant", "content": None, "tool_calls": [*calls]}


def _called(name: Callable[[int], str]) -> Build:
    def build(count: int) -> JsonObject:
        calls = [_call(f"call{number:05}", name(number)) for number in range(count)]
        results = [_result(f"call{number:05}") for number in range(count)]
        return _chat(user("Go"), _calling(*calls), *results)

    return build


def _tools(name: Callable[[int], str]) -> Build:
    def build(count: int) -> JsonObject:
        return {"tools": [{"type": "function", "function": {"name": name(number)}} for number in range(count)]}

    return build


def _properties(count: int) -> JsonObject:
    some: JsonObject = {f"p{number}": {"type": "string"} for number in range(count)}
    shape: JsonObject = {"type": "object", "properties": some, "required": [*some]}
    return {"tools": [{"type": "function", "function": {"name": "look", "parameters": shape}}]}


def _arguments(count: int) -> JsonObject:
    given = orjson.dumps({f"p{number}": number for number in range(count)}).decode()
    return _chat(user("Go"), _calling(_call("call1", "look", given)), _result("call1"))


def _call_id(count: int) -> JsonObject:
    identity = "a__thought__" + "_" * count
    return _chat(user("Go"), _calling(_call(identity, "look")), _result(identity))


def _fields(count: int) -> JsonObject:
    return {f"field_{number}": 1 for number in range(count)}


def _each(part: JsonObject) -> Build:
    return lambda count: _chat(user([part] * count))


def _said(unit: str) -> Build:
    return lambda count: _chat(user(unit * (count // len(unit))))


_ANSWER: JsonObject = {"role": "assistant", "content": "y"}
_INSTRUCTION: JsonObject = {"role": "system", "content": "x"}
_TEXT: JsonObject = {"type": "text", "text": "x"}
_PICTURE: JsonObject = {"type": "image_url", "image_url": {"url": IMAGE}}
_FILE: JsonObject = {"type": "file", "file": {"filename": "a.txt", "file_data": TEXT_FILE}}


def _parts_and_turns(count: int) -> JsonObject:
    parts: list[JsonValue] = [_TEXT]
    return _chat(user(parts * 10 * count), *[user("x")] * count)


AXES: tuple[Axis, ...] = (
    Axis("messages of one role", lambda n: _chat(*[user("x" * 4000)] * n), 1000),
    Axis("parts, then messages of one role", _parts_and_turns, 900),
    Axis("turns", lambda n: _chat(*[user("x"), _ANSWER] * (n // 2), user("x")), 1000),
    Axis("instructions", lambda n: _chat(*[_INSTRUCTION] * n, user("x")), 1000),
    Axis("parts", _each(_TEXT), 4000),
    Axis("images", _each(_PICTURE), 2000),
    Axis("files of one name", _each(_FILE), 1500),
    Axis("tools", _tools(_plain), 128),
    Axis("tools of foreign names", _tools(foreign), 128),
    Axis("properties of a tool", _properties, 4000),
    Axis("calls", _called(_plain), 600),
    Axis("calls of foreign names", _called(foreign), 600),
    # From 66,667 commas on, the commas outside of texts are counted. Both sizes are on the same side of that.
    Axis("arguments of a call", _arguments, 16_000),
    Axis("the id of a call", _call_id, 200_000),
    Axis("logit_bias", lambda n: {"logit_bias": {str(number): 1 for number in range(n)}}, 8000),
    Axis("metadata", lambda n: {"metadata": {f"k{number}": "v" for number in range(n)}}, 8000),
    Axis("unknown fields", _fields, 4000),
    Axis("extra params", lambda n: {"inference_extra_params": _fields(n)}, 8000),
    Axis("a long stop", lambda n: {"stop": ["x" * n]}, 250_000),
    Axis("user", lambda n: {"user": "1 a@" * (n // 4)}, 250_000),
    *(Axis(f"text of {unit!r}", _said(unit), 250_000) for unit in ("word ", ", ", '"\\\n', "\u0301", "\u2028", " ")),
    Axis("prompts", lambda n: {"prompt": ["x" * 1000] * n}, 60, chat=False),
    Axis("too many prompts", lambda n: {"prompt": ["x"] * n}, 20_000, chat=False),
    Axis("image markers", lambda n: {"prompt": "<image>" * n, "images": [IMAGE] * n}, 5000, chat=False),
    Axis("a suffix", lambda n: {"suffix": "x" * n}, 250_000, chat=False),
)
"""Everything that a client can make large, apart from the constraints."""

_BASE: Mapping[bool, JsonObject] = {True: {"messages": [{"role": "user", "content": "x"}]}, False: {"prompt": "x"}}


def body_of(axis: Axis, size: int) -> bytes:
    """Return a request's body."""
    return orjson.dumps({"model": "v/m", "max_tokens": 8, **_BASE[axis.chat], **axis.build(size)})


def parsed(axis: Axis, body: bytes) -> UnifiedRequest:
    return OPENAI.parse(Operation.CHAT if axis.chat else Operation.COMPLETIONS, body, None)


def targets() -> dict[str, Target]:
    """Return a deployment for each dialect, and for each rewriting of messages that some profile has, by the profile's
    name."""
    found: dict[str, Target] = {}
    covered: set[str] = set()
    for profile in load_profiles().values():
        kinds = {profile.dialect, *profile.hooks}
        if not kinds <= covered:
            found[profile.name] = target_of(profile.name, profile.examples[0], base_url=VENDOR, max_output_tokens=1024)
            covered |= kinds
    return found


def prepared(request: UnifiedRequest, target: Target) -> int:
    """Return how many calls a request becomes, without the fields that the target refuses. Return 0 if the request is
    refused."""
    try:
        return len(plan_calls(request, target, "drop").calls)
    except Refusal:
        return 0
