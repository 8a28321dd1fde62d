"""The key of a request in the response cache: a keyed hash over everything that may change its response. Pure.

Two requests are equal if all of the following is equal: the surface, the settings of the name and its deployments, the
rights of the team that change the call, and the request itself as it would be sent. Objects within the request keep the
order of their fields, because a model sees that order. The key includes whether the response is streamed: a
non-streaming response cannot be made into chunks, and not all chunks can be made into one. The key includes neither how
a stream shows its usage, nor the client's deadline.
"""

import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass, replace
from hashlib import blake2b
from operator import attrgetter
from typing import Final, cast

import orjson

from providers.frozen_record import frozen
from providers.hosted_tools.hosted_tool import is_hosted
from providers.request_fields import SEARCH
from providers.target import Target
from providers.unified_request import NO_STREAM_OPTIONS, ChatPrompt, UnifiedRequest
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import Team

_DIGEST: Final = 24
_FINGERPRINT: Final = "answer cache"
_SEED: Final = "answer cache seed"


def request_key(secret: bytes, form: str, surface: str, plan: Plan, team: Team, request: UnifiedRequest) -> str:
    """Return the key of a planned request, in hex. `secret` is at most 64 bytes; `form` is the form of cached
    responses."""
    if request.timeout is not None or request.stream_options is not NO_STREAM_OPTIONS:
        request = replace(request, timeout=None, stream_options=NO_STREAM_OPTIONS)
    hashed = _seed(secret, form, surface, plan, team).copy()
    hashed.update(_json(request))
    return hashed.hexdigest()


def _seed(secret: bytes, form: str, surface: str, plan: Plan, team: Team) -> blake2b:
    """Return the hash of everything except the request itself. It is cached with the plan's first deployment for later
    requests of the same plan, so callers must not update it."""
    compiled = plan.targets[0].compiled
    name = (_SEED, secret, form, surface, team.tenant)
    kept = compiled.get(name)
    if isinstance(kept, _Seed) and kept.plan is plan and kept.team is team:
        return kept.hashed
    shared = plan.cache is not None and plan.cache.scope == "table"
    facts = (
        form,
        surface,
        "" if shared else team.tenant,
        (
            team.on_unsupported,
            team.context_length_exceeded_behavior,
            repr(team.media.schemes and sorted(team.media.schemes)),
        ),
        team.media.allow_private,
        (plan.asked, plan.label, plan.by_route, plan.same_space),
        sorted({_fingerprint(target) for target in plan.every_target}),
    )
    hashed = blake2b(_json(facts), digest_size=_DIGEST, key=secret)
    compiled[name] = _Seed(plan, team, hashed)
    return hashed


@frozen(eq=False)
class _Seed:
    """The result of `_seed` for a plan and a team."""

    plan: Plan
    team: Team
    hashed: blake2b


def _fingerprint(target: Target) -> str:
    """Return a text for a deployment and its settings that may change a response, including its account."""
    found = target.compiled.get(_FINGERPRINT)
    if not isinstance(found, str):
        words = (
            *(target.name, target.upstream_model, target.base_url, target.profile.name, target.api_version),
            *(target.context_window, target.max_output_tokens, target.completions, target.allow_private),
            *(
                target.on_unsupported,
                target.context_length_exceeded_behavior,
                target.stream_upstream,
                sorted(target.permits.fields),
            ),
        )
        found = target.compiled[_FINGERPRINT] = target.credential.seal(_FINGERPRINT, repr(words))
    return found


def _plain(value: object) -> object:
    """Return a JSON value for a value that has no form in JSON. A frozen dataclass becomes its class and its compared
    fields."""
    kind = type(value)
    counted = _COUNTED.get(kind)
    if counted is not None:
        return kind.__name__, counted(value)
    if kind is frozenset:
        return sorted(cast(frozenset[str], value))
    if is_dataclass(kind):
        _COUNTED[kind] = attrgetter(*[each.name for each in fields(kind) if each.compare])
        return _plain(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} in a request")


_COUNTED: Final[dict[type[object], Callable[[object], object]]] = {}
"""The function that returns the compared fields of each frozen dataclass."""

_ESCAPING: Final = json.JSONEncoder(separators=(",", ":"), default=_plain, check_circular=False)


def _json(value: object) -> bytes:
    """Return JSON. The standard library writes lone surrogates and integers beyond 64 bits."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS)
    except orjson.JSONEncodeError:
        return _ESCAPING.encode(value).encode()


_BY_REFERENCE: Final = frozenset({"file_id", "fileId", "container", "container_id"})
_ADDRESSES: Final = frozenset({"url", "uri", "file_uri", "fileUri", "file_url", "image_url", "audio_url", "video_url"})
_CLIENT_TOOLS: Final = frozenset({"function", "custom", None})
_LOOKED_AT: Final = frozenset({"store", "audio", "tools", "images", SEARCH})
"""Params that may be a reason not to cache."""

_KEPT_ELSEWHERE: Final = ("container", "mcp_servers", "previous_response_id", "conversation")


def why_not(request: UnifiedRequest) -> str | None:
    """Return why the response to a request is never cached, as a clause; `None` if it may be.

    Media that a request names by an address or a file's id may change, and so may the results of a vendor's own tools.
    A response that the vendor stores for the client has its own id. Spoken responses expire.
    """
    if _is_plain(request):
        return None
    return next((why for applies, why in _REASONS if applies(request)), None)


def _is_plain(request: UnifiedRequest) -> bool:
    """Return whether a request has nothing that `why_not` examines. This is true of most requests."""
    prompt = request.prompt
    plain = isinstance(prompt, ChatPrompt) and prompt.plain
    return plain and not request.passes_unknown and _LOOKED_AT.isdisjoint(request.params)


def _stored(request: UnifiedRequest) -> bool:
    return bool(request.params.get("store"))


def _spoken(request: UnifiedRequest) -> bool:
    return "audio" in request.params


def _goes_on(request: UnifiedRequest) -> bool:
    held = (_body(request), request.unknown or {}, request.extra_params or {})
    return any(members.get(name) for members in held for name in _KEPT_ELSEWHERE)


def _has_vendors_tools(request: UnifiedRequest) -> bool:
    if SEARCH in request.params:
        return True
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
    return isinstance(tool, dict) and (tool.get("type") not in _CLIENT_TOOLS or is_hosted(tool))


def _refers(value: Sequence[object]) -> bool:
    """Return whether parts of messages refer to anything by an address or a file's id."""
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
