"""The OpenAI family's wire format, outgoing: completions and chat completions, as each vendor's profile has them.

Never I/O, and never a vendor's name: what differs between vendors is in their rows.

Sources: OpenAI OpenAPI 2.3.0; the rows name theirs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote

import orjson

from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.openai_answer import decode_body
from providers.dialects.openai_errors import classify
from providers.dialects.openai_prompt import native_prompt, wrapped_messages
from providers.dialects.openai_stream import OpenAIStream
from providers.failure import Failure, Refusal
from providers.guided import Constraint, Unenforceable, constrain, format_members
from providers.profiles import Profile, Wire, merged
from providers.unified import (
    PROTECTED_PARAMS,
    ChatPrompt,
    Guided,
    JsonObject,
    JsonValue,
    LogprobsWanted,
    Operation,
    UnifiedRequest,
    is_neutral,
)


@dataclass(slots=True)
class Draft:
    """A body in work, and what the answer's decoding will need to know of it."""

    target: Target
    operation: Operation
    body: JsonObject
    emulated: list[str] = field(default_factory=list)
    unwrap: bool = False


Encode = Callable[[Draft, object], None]


@dataclass(frozen=True, slots=True)
class Sheet:
    """One target and operation compiled: where to send, and how each unified field is written."""

    url: str
    profile: Profile
    wire: Wire
    fields: Mapping[str, Encode]


class OpenAIDialect:
    """See providers.dialect.Dialect."""

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        operation = _operation(request, target)
        sheet = _sheet(target, operation)
        draft = Draft(target, operation, {"model": target.upstream_model})
        _put_prompt(draft, request, sheet)
        for name, value in request.params.items():
            encode = sheet.fields.get(name)
            if encode is not None:
                try:
                    encode(draft, value)
                except Refusal:
                    # A surface's own default is a wish, not the client's word.
                    if name not in request.injected:
                        raise
            elif name not in request.injected and not is_neutral(name, value):
                raise unsupported(target, name)
        if draft.unwrap and "logprobs" in request.params:
            raise unsupported(target, "logprobs", "the choice is made inside an object whose tokens are not the text's")
        _put_stream(draft, request, sheet)
        _put_extras(draft, request, sheet)
        return UpstreamRequest(
            target=target,
            operation=operation,
            url=sheet.url,
            body=orjson.dumps(draft.body),
            stream=request.stream,
            headers=request.extra_headers or {},
            emulated=tuple(draft.emulated),
            unwrap_choice=draft.unwrap,
        )

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_body(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return OpenAIStream(sent)

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify(sent.target.profile, status, headers, body)


def unsupported(target: Target, name: str, reason: str = "") -> Refusal:
    """The refusal of a field, under the name the client used."""
    because = f": {reason}" if reason else ""
    return Refusal(name, f"'{name}' is not supported by {target.name}{because}.")


def _operation(request: UnifiedRequest, target: Target) -> Operation:
    """What to ask the vendor: a prompt goes to completions where the model takes raw prompts, else into a chat."""
    profile, model = target.profile, target.upstream_model
    raw = target.completions if target.completions is not None else profile.takes_raw_prompts(model)
    chats = profile.chats(model) if target.completions is None else Operation.CHAT in profile.wires
    if request.operation is Operation.CHAT:
        if not chats:
            raise unsupported(target, "messages", "the model takes raw prompts only; use a completions endpoint")
        return Operation.CHAT
    if raw and Operation.COMPLETIONS in profile.wires and not request.params.get("tools"):
        return Operation.COMPLETIONS
    if not chats:
        raise unsupported(target, "tools", "the model takes raw prompts only")
    return Operation.CHAT


@lru_cache(maxsize=8192)
def _sheet(target: Target, operation: Operation) -> Sheet:
    profile = target.profile.for_model(target.upstream_model)
    wire = profile.wires[operation]
    fields: dict[str, Encode] = {name: _SPECIAL.get(name, _plain)(name, profile, wire) for name in wire.accepts}
    fields["context_length_exceeded_behavior"] = _context(profile)
    return Sheet(_url(target, profile, wire), profile, wire, fields)


def _url(target: Target, profile: Profile, wire: Wire) -> str:
    url = target.base_url
    if profile.model_in == "path":
        url += f"/openai/deployments/{quote(target.upstream_model, safe='')}"
    url += wire.path
    version = target.api_version or profile.api_version
    return url if version is None else f"{url}?api-version={quote(version, safe='')}"


def _put_prompt(draft: Draft, request: UnifiedRequest, sheet: Sheet) -> None:
    if draft.operation is Operation.COMPLETIONS:
        draft.body["prompt"] = native_prompt(draft.target, sheet.profile, request.prompt)
    elif isinstance(request.prompt, ChatPrompt):
        if not is_neutral("images", request.params.get("images", ())):
            raise unsupported(draft.target, "images", "on chat they belong into the messages")
        draft.body["messages"] = list(request.prompt.messages)
    else:
        draft.body["messages"] = wrapped_messages(draft.target, request)
        draft.emulated.append("prompt")


def _put_stream(draft: Draft, request: UnifiedRequest, sheet: Sheet) -> None:
    if request.stream:
        draft.body["stream"] = True
        if sheet.profile.asks_usage:
            # Always asked, for the gateway's own account; the surface shows it only to a client that asked.
            draft.body["stream_options"] = {"include_usage": True}


def _put_extras(draft: Draft, request: UnifiedRequest, sheet: Sheet) -> None:
    if request.unknown:
        if not sheet.profile.forwards_unknown:
            raise unsupported(draft.target, next(iter(request.unknown)), "the vendor refuses fields it does not know")
        draft.body.update(request.unknown)
    if request.extra_params:
        if protected := PROTECTED_PARAMS & set(request.extra_params):
            name = min(protected)
            raise Refusal("inference_extra_params", f"'inference_extra_params' may not set '{name}'.", "invalid_value")
        draft.body = merged(draft.body, dict(request.extra_params))


def _plain(name: str, profile: Profile, wire: Wire) -> Encode:
    to = wire.rename.get(name, name)
    low, high = profile.bounds.get(name, (None, None))

    def encode(draft: Draft, value: object) -> None:
        draft.body[to] = value  # type: ignore[assignment]  # Params holds JSON under these names

    def encode_bounded(draft: Draft, value: object) -> None:
        _check_bounds(draft.target, name, value, low, high)
        encode(draft, value)

    return encode if low is None and high is None else encode_bounded


def _check_bounds(target: Target, name: str, value: object, low: float | None, high: float | None) -> None:
    if isinstance(value, int | float) and ((low is not None and value < low) or (high is not None and value > high)):
        limits = f"from {low:g} " if low is not None else ""
        limits += f"up to {high:g}" if high is not None else "upwards"
        raise Refusal(name, f"'{name}' must be {limits} on {target.name}.", "invalid_value")


def _max_tokens(name: str, profile: Profile, wire: Wire) -> Encode:
    low, high = profile.bounds.get(name, (None, None))

    def encode(draft: Draft, value: object) -> None:
        _check_bounds(draft.target, name, value, low, high)
        draft.body[wire.max_tokens_field] = value  # type: ignore[assignment]  # an int

    return encode


def _stop(name: str, profile: Profile, wire: Wire) -> Encode:
    def encode(draft: Draft, value: object) -> None:
        stops = list(value) if isinstance(value, tuple) else []
        if len(stops) > profile.stop_most:
            raise unsupported(draft.target, name, f"it takes at most {profile.stop_most} stop sequences")
        if stops:
            draft.body["stop"] = stops

    return encode


def _logprobs(name: str, profile: Profile, wire: Wire) -> Encode:
    mode, most = wire.logprobs.mode, wire.logprobs.most

    def encode(draft: Draft, value: object) -> None:
        if not isinstance(value, LogprobsWanted) or mode == "none":
            raise unsupported(draft.target, name)
        if value.top > most:
            raise Refusal(name, f"'{name}' lists at most {most} tokens on {draft.target.name}.", "invalid_value")
        if mode == "int" or (mode == "either" and value.shape == "legacy"):
            # On chat routes that count, 0 would mean "none".
            draft.body["logprobs"] = max(value.top, 1) if draft.operation is Operation.CHAT else value.top
            return
        draft.body["logprobs"] = True
        if value.top:
            draft.body["top_logprobs"] = value.top

    return encode


def _constrained(name: str, profile: Profile, wire: Wire) -> Encode:
    def encode(draft: Draft, value: object) -> None:
        given = name
        try:
            if isinstance(value, Guided):
                given = value.field
                constraint = constrain(profile.structured, value, draft.operation)
            elif isinstance(value, dict):
                constraint = format_members(profile.structured, value, draft.operation)
            else:
                raise TypeError(f"{name} holds {type(value).__name__}")
        except Unenforceable as reason:
            raise unsupported(draft.target, given, reason.reason) from None
        _apply(draft, constraint, given)

    return encode


def _apply(draft: Draft, constraint: Constraint, name: str) -> None:
    draft.body.update(constraint.members)
    draft.unwrap = constraint.unwrap
    if constraint.emulated:
        draft.emulated.append(name)


def _images(name: str, profile: Profile, wire: Wire) -> Encode:
    def encode(draft: Draft, value: object) -> None:
        # On chat they have become parts of the message.
        if draft.operation is Operation.COMPLETIONS and isinstance(value, tuple):
            lists: list[JsonValue] = [list(images) for images in value]
            draft.body["images"] = lists[0] if len(lists) == 1 else lists

    return encode


def _context(profile: Profile) -> Encode:
    name = "context_length_exceeded_behavior"

    def encode(draft: Draft, value: object) -> None:
        if profile.context == "native":
            draft.body[name] = str(value)
        elif value == "truncate":
            raise unsupported(draft.target, name, "it cannot shorten the answer to what fits")
        elif profile.context == "clamps":
            raise unsupported(draft.target, name, "it shortens the answer by itself instead of refusing")

    return encode


def _unless_neutral(name: str, profile: Profile, wire: Wire) -> Encode:
    plain = _plain(name, profile, wire)

    def encode(draft: Draft, value: object) -> None:
        if not is_neutral(name, value):
            plain(draft, value)

    return encode


_SPECIAL: Mapping[str, Callable[[str, Profile, Wire], Encode]] = {
    "max_tokens": _max_tokens,
    "stop": _stop,
    "logprobs": _logprobs,
    "guided": _constrained,
    "response_format": _constrained,
    "images": _images,
    # Not every server knows every spelling of "off".
    "echo": _unless_neutral,
    "top_k": _unless_neutral,
    "tools": _unless_neutral,
    "suffix": _unless_neutral,
    "logit_bias": _unless_neutral,
}
