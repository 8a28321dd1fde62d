"""The key of a request in the answer cache: a keyed hash over everything that may change its answer. Pure.

Requests are equal where all of this is: the surface, what the table says of the name and its deployments, the rights of
the team that change what is sent, and the request itself as it would be sent. Objects within it keep the order of their
members, which a model sees. Whether an answer is streamed belongs to it: the pieces cannot be made of a whole answer,
nor always a whole answer of them. How a stream shows its usage does not, nor does the client's deadline.
"""

import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass, replace
from hashlib import blake2b
from typing import Final

import orjson

from providers.target import Target
from providers.unified_request import NO_STREAM_OPTIONS, ChatPrompt, UnifiedRequest
from proxy.routing.resolve_model import Plan
from proxy.routing.snapshot import Team

_DIGEST: Final = 24
_FINGERPRINT: Final = "answer cache"


def request_key(secret: bytes, form: str, surface: str, plan: Plan, team: Team, request: UnifiedRequest) -> str:
    """Return the key of a planned request, in hex. `secret` is at most 64 bytes; `form` is that of kept answers."""
    shared = plan.cache is not None and plan.cache.scope == "table"
    plain = request.timeout is None and request.stream_options is NO_STREAM_OPTIONS
    facts = (
        form,
        surface,
        "" if shared else team.tenant,
        (team.on_unsupported, team.context_behavior, repr(team.media.schemes and sorted(team.media.schemes))),
        team.media.allow_private,
        (plan.asked, plan.label, plan.by_route, plan.same_space),
        sorted({_fingerprint(target) for target in plan.every_target}),
        request if plain else replace(request, timeout=None, stream_options=NO_STREAM_OPTIONS),
    )
    return blake2b(_json(facts), digest_size=_DIGEST, key=secret).hexdigest()


def _fingerprint(target: Target) -> str:
    """Return what stands for a deployment and its settings that may change an answer, its account included."""
    found = target.compiled.get(_FINGERPRINT)
    if not isinstance(found, str):
        words = (
            *(target.name, target.upstream_model, target.base_url, target.profile.name, target.api_version),
            *(target.context_window, target.max_output_tokens, target.completions, target.allow_private),
            *(target.on_unsupported, target.context_behavior, target.stream_upstream, sorted(target.permits.fields)),
        )
        found = target.compiled[_FINGERPRINT] = target.credential.seal(_FINGERPRINT, repr(words))
    return found


def _plain(value: object) -> object:
    """Return what JSON has no form for as what has one: records with their class, without what does not count."""
    kind = type(value)
    if is_dataclass(kind):
        names = _COUNTED.get(kind)
        if names is None:
            names = _COUNTED[kind] = tuple(each.name for each in fields(kind) if each.compare)
        return [kind.__name__, [getattr(value, name) for name in names]]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} in a request")


_COUNTED: Final[dict[type[object], tuple[str, ...]]] = {}
"""The fields of each kind of record that count when records are compared."""

_ESCAPING: Final = json.JSONEncoder(separators=(",", ":"), default=_plain, check_circular=False)


def _json(value: object) -> bytes:
    """Return JSON; lone surrogates and integers beyond 64 bits by the standard library."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS)
    except orjson.JSONEncodeError:
        return _ESCAPING.encode(value).encode()


_BY_REFERENCE: Final = frozenset({"file_id", "fileId", "container", "container_id"})
_ADDRESSES: Final = frozenset({"url", "uri", "file_uri", "fileUri", "file_url", "image_url", "audio_url", "video_url"})
_CLIENT_TOOLS: Final = frozenset({"function", "custom", None})
_KEPT_ELSEWHERE: Final = ("container", "mcp_servers", "previous_response_id", "conversation")


def why_not(request: UnifiedRequest) -> str | None:
    """Return why the answer to a request is never kept, as a clause; None where it may be.

    Media by address or by a file's id may change behind it, and so may what a vendor's own tools find or do. An answer
    that the client has stored at the vendor has an id of its own; spoken ones expire.
    """
    return next((why for applies, why in _REASONS if applies(request)), None)


def _stored(request: UnifiedRequest) -> bool:
    return bool(request.params.get("store"))


def _spoken(request: UnifiedRequest) -> bool:
    return "audio" in request.params


def _goes_on(request: UnifiedRequest) -> bool:
    held = (_body(request), request.unknown or {}, request.extra_params or {})
    return any(members.get(name) for members in held for name in _KEPT_ELSEWHERE)


def _has_vendors_tools(request: UnifiedRequest) -> bool:
    held = (request.params.get("tools"), _body(request).get("tools"), (request.extra_params or {}).get("tools"))
    return any(_is_vendors(tool) for tools in held if isinstance(tools, list) for tool in tools)


def _names_media(request: UnifiedRequest) -> bool:
    if any(not image.startswith("data:") for group in request.params.get("images", ()) for image in group):
        return True
    prompt, body = request.prompt, _body(request)
    if isinstance(prompt, ChatPrompt) and not prompt.plain and _refers(prompt.messages):
        return True
    return bool(body) and _refers([body.get("messages"), body.get("system")])


def _body(request: UnifiedRequest) -> Mapping[str, object]:
    return {} if request.native is None else request.native.body


_REASONS: Final[tuple[tuple[Callable[[UnifiedRequest], bool], str], ...]] = (
    (_stored, "the answer is to be stored at the vendor"),
    (_spoken, "a spoken answer expires"),
    (_goes_on, "it goes on from what is kept elsewhere"),
    (_has_vendors_tools, "a tool of the vendor's own may do or find something else"),
    (_names_media, "it names media by an address or an id, behind which they may change"),
)


def _is_vendors(tool: object) -> bool:
    return isinstance(tool, dict) and tool.get("type") not in _CLIENT_TOOLS


def _refers(value: Sequence[object]) -> bool:
    """Return whether parts of messages name anything by an address or a file's id."""
    pending: list[object] = list(value)
    while pending:
        item = pending.pop()
        if isinstance(item, list | tuple):
            pending.extend(item)
        elif isinstance(item, dict):
            for name, inner in item.items():
                if isinstance(inner, str):
                    if inner and (name in _BY_REFERENCE or (name in _ADDRESSES and not inner.startswith("data:"))):
                        return True
                elif isinstance(inner, dict | list):
                    pending.append(inner)
    return False
