"""Collect the texts of a request for its guards, and replace them by other texts. Pure.

Guards see every string that `request_strings` does not exclude: words of the APIs, ids, media. The original form
of a rewritten text must not reach a vendor. So the client's own body is dropped, and the request is translated for
every vendor. If a message of the model was changed, its reasoning is dropped too, because its signature and position
no longer fit.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar, cast

from providers.json_types import JsonObject, JsonValue
from providers.tasks.embeddings import EmbeddingsRequest
from providers.tasks.pass_on import PassedForm, PassedRequest
from providers.tasks.rerank import RerankRequest
from providers.unified_request import (
    ChatPrompt,
    Guided,
    Params,
    TextPrompt,
    TokenPrompt,
    TranslationLosses,
    UnifiedRequest,
)
from proxy.errors import FieldProblem, GatewayError, invalid_request
from proxy.plugins.answer_texts import rewritten_arguments, unescaped
from proxy.plugins.api import GuardedText, TextKind
from proxy.plugins.request_strings.places import FREE
from proxy.plugins.request_strings.walk_strings import changed

AnyRequest = UnifiedRequest | EmbeddingsRequest | RerankRequest | PassedRequest
Q = TypeVar("Q")
V = TypeVar("V", EmbeddingsRequest, RerankRequest)

_REASONING_FIELDS: Final = (
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "thinking_blocks",
    "reasoning_signature",
)
"""Fields of a message in which clients send back the model's reasoning."""

_ARGUMENTS: Final = "arguments"
"""The key of a tool call's JSON arguments, in Chat Completions and in Responses."""

_EXTRA: Final = "inference_extra_params"
_HEADERS: Final = "inference_extra_headers"

_HEADER: Final = re.compile(r"[\x20-\x7e]*")
_TOKEN: Final = re.compile(r"[!-~]*")
"""A header's value without a space: an id, a date or a switch."""

_CONTENT: Final = frozenset({"input", "prompt", "instructions", "query", "documents"})
"""The fields of a passed-on request that are its content."""


class TextCollector:
    """A walk that collects the texts."""

    def __init__(self) -> None:
        self.texts: list[GuardedText] = []
        self.role = ""
        self.kind: TextKind = "other"

    def take(self, text: str, key: str, place: str) -> str:
        kind = self.kind
        if key == _ARGUMENTS and kind in ("content", "reasoning"):
            kind = "tool_arguments"
        elif key == "name" and kind != "other":
            kind = "name"
        shown = unescaped(text) if key == _ARGUMENTS else text
        self.texts.append(GuardedText(shown, kind, self.role, place))
        return text

    def take_name(self, name: str, place: str) -> str:
        self.texts.append(GuardedText(name, "name", self.role, place))
        return name


class TextReplacer:
    """A walk that replaces the texts, in the order in which they were collected."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = iter(texts)
        self.role = ""
        self.kind: TextKind = "other"

    def take(self, text: str, key: str, place: str) -> str:
        new = next(self._texts)
        return rewritten_arguments(text, new) if key == _ARGUMENTS else new

    def take_name(self, name: str, place: str) -> str:
        return next(self._texts)


_Walk = TextCollector | TextReplacer


def texts_of(request: object) -> tuple[GuardedText, ...]:
    """Return every text of a request. Raises GatewayError if guards cannot read it."""
    reader = TextCollector()
    _walked(_known(request), reader)
    if isinstance(request, UnifiedRequest) and request.native is not None:
        shown = {each.text for each in reader.texts}
        reader.texts += [text for text in _of_body(request.native.body) if text.text not in shown]
    return tuple(reader.texts)


def rewritten(request: Q, texts: Sequence[str]) -> tuple[Q, tuple[str, ...]]:
    """Return the request with these texts in place of the texts of `texts_of`, and the names of the fields that are
    omitted for it."""
    made, dropped = _walked(_known(request), TextReplacer(texts))
    return cast(Q, made), dropped


def _known(request: object) -> AnyRequest:
    """Return a request if the texts of its type are known. Raises TypeError for other types, because they must not
    pass unchecked."""
    if not isinstance(request, AnyRequest):
        raise TypeError(f"no texts of a {type(request).__name__} are known")
    return request


def _of_body(body: JsonObject) -> Iterator[GuardedText]:
    reader = TextCollector()
    changed(body, "", "body", reader, "native body")
    yield from reader.texts


def _walked(request: AnyRequest, walk: _Walk) -> tuple[AnyRequest, tuple[str, ...]]:
    match request:
        case UnifiedRequest():
            return _unified(request, walk)
        case EmbeddingsRequest():
            return _embeddings(request, walk), ()
        case RerankRequest():
            return _rerank(request, walk), ()
        case PassedRequest():
            return _passed_on(request, walk), ()


# Requests for text ---------------------------------------------------------------------------------------------------


def _unified(request: UnifiedRequest, walk: _Walk) -> tuple[UnifiedRequest, tuple[str, ...]]:
    dropped: list[str] = []
    walk.kind, walk.role = "content", "user"
    prompt = request.prompt
    match prompt:
        case TokenPrompt():
            raise _unreadable("prompt")
        case TextPrompt(texts):
            places = ("prompt[{}]" if prompt.listed or len(texts) > 1 else "prompt").format
            new = tuple([walk.take(text, "prompt", places(number)) for number, text in enumerate(texts)])
            prompt = replace(prompt, texts=new)
        case ChatPrompt(messages):
            rewritten_messages = [_message(message, number, walk, dropped) for number, message in enumerate(messages)]
            prompt = replace(prompt, messages=tuple(rewritten_messages))
    walk.role = ""
    params = _params(request.params, walk)
    unknown, extra = _beside(request.unknown, "", walk), _beside(request.extra_params, _EXTRA, walk)
    headers, losses = _headers(request.extra_headers, walk), _losses(request.losses, walk)
    made = replace(
        request,
        prompt=prompt,
        params=params,
        unknown=unknown,
        extra_params=extra,
        extra_headers=headers,
        losses=losses,
        native=None,
    )
    return made, tuple(dropped)


def _message(message: JsonObject, number: int, walk: _Walk, dropped: list[str]) -> JsonObject:
    role = message.get("role")
    walk.role = role if isinstance(role, str) else ""
    place = f"messages[{number}]"
    named = walk.role not in ("tool", "function")
    made: JsonObject = {}
    for key, value in message.items():
        walk.kind = "reasoning" if key in _REASONING_FIELDS else "tool_result" if walk.role == "tool" else "content"
        if key == "role":
            made[key] = value  # a known role
        elif isinstance(value, str) and (key == "content" or (key == "name" and named)):
            made[key] = walk.take(value, "", f"{place}.{key}")
        else:
            _add_field(made, changed({key: value}, "", place, walk, "message"), key)
    if "content" in made:
        _judge_joined(message.get("content"), made["content"], f"{place}.content", walk)
    if made != message and any(key in made for key in _REASONING_FIELDS):
        dropped.append("reasoning")
        return {key: value for key, value in made.items() if key not in _REASONING_FIELDS}
    return made


def _judge_joined(before: JsonValue, after: JsonValue, place: str, walk: _Walk) -> None:
    """Check the texts of several parts as one, because vendors without parts get them joined. Raises GatewayError if a
    guard changes words that are split over parts."""
    text = _joined(before)
    if text is not None:
        walk.kind = "tool_result" if walk.role == "tool" else "content"
        if walk.take(text, "", place) not in (text, _joined(after)):
            raise _split(place)


def _joined(content: JsonValue) -> str | None:
    """Return the texts of several parts as one text; `None` if there are fewer than two parts."""
    parts = content if isinstance(content, list) else ()
    texts = [text for part in parts if isinstance(part, dict) and isinstance(text := part.get("text"), str)]
    return "".join(texts) if len(texts) > 1 else None


def _params(params: Params, walk: _Walk) -> Params:
    made: dict[str, object] = dict(params)
    for name, value in params.items():
        walk.kind = "tool_definition" if name == "tools" else "other"
        if isinstance(value, Guided):
            text = changed(value.value, "", value.field, walk)
            made[name] = Guided(value.kind, cast("JsonObject | tuple[str, ...] | str", text))
        elif name != "logit_bias":  # the keys of this object are numbers
            made[name] = changed(value, name, name, walk, "identity" if isinstance(value, str) else FREE)
    return cast(Params, made)


def _losses(losses: TranslationLosses | None, walk: _Walk) -> TranslationLosses | None:
    """Return the losses of a translation. The texts are changed in params that may be sent in place of other params."""
    if losses is None or not losses.instead:
        return losses
    instead = {name: changed(params, "", name, walk) for name, params in losses.instead.items()}
    return replace(losses, instead=cast("Mapping[str, JsonObject]", instead))


def _headers(headers: Mapping[str, str] | None, walk: _Walk) -> Mapping[str, str] | None:
    """Return the client's headers. Values that contain a space are changed, because texts have spaces and ids do
    not."""
    if headers is None:
        return None
    walk.kind, walk.role = "other", ""
    made: dict[str, str] = {}
    for name, value in headers.items():
        place = f"{_HEADERS}.{name}"
        made[name] = value if _TOKEN.fullmatch(value) else walk.take(value, name, place)
        if not _HEADER.fullmatch(made[name]):
            raise _unreadable(place)
    return made


# Other tasks ---------------------------------------------------------------------------------------------------------


def _embeddings(request: EmbeddingsRequest, walk: _Walk) -> EmbeddingsRequest:
    if request.tokenized:
        raise _unreadable("input")
    walk.kind, walk.role = "content", "user"
    texts = tuple([walk.take(text, "input", f"input[{number}]") for number, text in enumerate(request.texts)])
    walk.kind, walk.role = "other", ""
    purpose = _word(request.input_type, "input_type", walk)
    return _beside_task(replace(request, inputs=texts, input_type=purpose), walk)


def _rerank(request: RerankRequest, walk: _Walk) -> RerankRequest:
    walk.kind, walk.role = "content", "user"
    query = walk.take(request.query, "query", "query")
    texts = tuple([walk.take(text, "documents", f"documents[{at}]") for at, text in enumerate(request.documents)])
    # The response may repeat the client's own objects, which have the original texts. So they are dropped if a text
    # changed.
    objects = request.objects if texts == request.documents else {}
    return _beside_task(replace(request, query=query, documents=texts, objects=objects), walk)


def _beside_task(request: V, walk: _Walk) -> V:
    """Return the request with the texts of its other fields changed."""
    walk.kind, walk.role = "other", ""
    user = _word(request.user, "user", walk)
    unknown, extra = _beside(request.unknown, "", walk), _beside(request.extra_params, _EXTRA, walk)
    headers = _headers(request.extra_headers, walk)
    return replace(request, user=user, unknown=unknown, extra_params=extra, extra_headers=headers)


def _passed_on(request: PassedRequest, walk: _Walk) -> PassedRequest:
    content, kind = request.content, "passed body"
    walk.role = "user"
    if isinstance(content, PassedForm):
        if _members(content.fields, "form", walk) != content.fields:
            raise _unreadable("a form")  # the field is passed on unchanged, from a file
        return request
    made = _members(content, kind, walk)
    extra = cast("JsonObject | None", _beside(request.extra_params, _EXTRA, walk))
    headers = _headers(request.extra_headers, walk)
    return replace(request, content=made, extra_params=extra, extra_headers=headers)


def _members(content: Mapping[str, JsonValue] | Mapping[str, str], kind: str, walk: _Walk) -> JsonObject:
    made: JsonObject = {}
    for name, value in content.items():
        walk.kind = "content" if name in _CONTENT else "other"
        _add_field(made, changed({name: value}, "", "", walk, kind), name)
    return made


def _add_field(made: JsonObject, member: JsonValue, name: str) -> None:
    """Add a field to `made`. Its key may differ from its original `name`. Raises GatewayError if the key exists
    already."""
    added = cast(JsonObject, member)
    if not added.keys().isdisjoint(made):
        raise _unreadable(name)
    made |= added


def _word(value: str | None, name: str, walk: _Walk) -> str | None:
    return cast("str | None", changed(value, name, name, walk, "identity"))


def _beside(members: Mapping[str, JsonValue] | None, place: str, walk: _Walk) -> Mapping[str, JsonValue] | None:
    """Return fields that no API defines, changed as texts."""
    walk.kind, walk.role = "other", ""
    return cast("Mapping[str, JsonValue] | None", changed(members, "", place, walk))


def _unreadable(what: str) -> GatewayError:
    return _refused(what, "cannot be read by the plugins that check your team's requests; send text.")


def _split(what: str) -> GatewayError:
    return _refused(
        what, "has words split over its parts that the plugins that check your team's requests would change."
    )


def _refused(what: str, why: str) -> GatewayError:
    return invalid_request((FieldProblem((what,), f"'{what}' {why}", "unsupported_parameter"),))
