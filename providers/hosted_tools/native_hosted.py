"""Translates tools that the vendor runs and that a client's own body spells as another API does.

Source: `hosted_tool` names the spellings.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from providers.dialect import UpstreamRequest, encode_native
from providers.hosted_tools.hosted_tool import hosted_tool
from providers.hosted_tools.translate_hosted import HostedWriter
from providers.json_types import JsonObject, JsonValue
from providers.profile import HostedKind, HostedStyle, Profile
from providers.target import Target
from providers.unified_request import NativeApi, UnifiedRequest

_OF_RESPONSES: Final[Mapping[HostedKind, HostedStyle]] = {"web_search": "responses", "code_execution": "responses"}
_NATIVE_APIS: Final = {NativeApi.MESSAGES: "anthropic", NativeApi.RESPONSES: "openai"}


def encode_own_body(request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
    """Return the call with the client's own body; `None` if the target does not speak its API. Raises Refusal."""
    call = encode_native(request, target)
    if call is None or (named := translate_native(request, target)) is request:
        return call
    return encode_native(named, target)


def translate_native(request: UnifiedRequest, target: Target) -> UnifiedRequest:
    """Return a request whose own body names tools that the vendor runs as its API does: the same object unless a tool
    is in another API's form. Raises Refusal."""
    native = request.native
    tools = native.body.get("tools") if native is not None else None
    if native is None or not isinstance(tools, list):
        return request
    own = _NATIVE_APIS[native.api]
    foreign = [isinstance(tool, dict) and _is_foreign(tool, own) for tool in tools]
    if not any(foreign):
        return request
    work = HostedWriter(target, _native_profile(native.api, target))
    written: list[JsonValue] = []
    for tool, is_foreign in zip(tools, foreign, strict=True):
        if isinstance(tool, dict) and is_foreign:
            work.tools = []
            work.add(tool)
            written += work.tools
        else:
            written.append(tool)
    return replace(request, native=replace(native, body={**native.body, "tools": written}))


def _native_profile(api: NativeApi, target: Target) -> Profile:
    """Return the profile of the target's model, as far as it holds for the client's own API."""
    profile = target.model_profile
    return replace(profile, hosted=_OF_RESPONSES) if api is NativeApi.RESPONSES else profile


def _is_foreign(tool: JsonObject, own: str) -> bool:
    kind = tool.get("type")
    if kind in ("function", "custom") or (kind is None and len(tool) != 1):
        return False
    read = hosted_tool(tool)
    return read is not None and read.api != own
