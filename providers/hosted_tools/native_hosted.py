"""Translates hosted tools in a client's own body that have the form of another API.

`hosted_tool` lists the forms and their sources.
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

_RESPONSES_STYLES: Final[Mapping[HostedKind, HostedStyle]] = {"web_search": "responses", "code_execution": "responses"}
_FORMS_BY_API: Final = {NativeApi.MESSAGES: "anthropic", NativeApi.RESPONSES: "openai"}


def encode_own_body(request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
    """Return the call with the client's own body; `None` if the target does not speak the client's API. Raises
    Refusal."""
    call = encode_native(request, target)
    if call is None or (translated := translate_native(request, target)) is request:
        return call
    return encode_native(translated, target)


def translate_native(request: UnifiedRequest, target: Target) -> UnifiedRequest:
    """Return the request with all hosted tools of its own body in the form of its API. Return the same object if no
    tool has another API's form. Raises Refusal."""
    native = request.native
    tools = native.body.get("tools") if native is not None else None
    if native is None or not isinstance(tools, list):
        return request
    own = _FORMS_BY_API[native.api]
    foreign = [isinstance(tool, dict) and _is_foreign(tool, own) for tool in tools]
    if not any(foreign):
        return request
    writer = HostedWriter(target, _native_profile(native.api, target))
    written: list[JsonValue] = []
    for tool, is_foreign in zip(tools, foreign, strict=True):
        if isinstance(tool, dict) and is_foreign:
            writer.tools = []
            writer.add(tool)
            written += writer.tools
        else:
            written.append(tool)
    return replace(request, native=replace(native, body={**native.body, "tools": written}))


def _native_profile(api: NativeApi, target: Target) -> Profile:
    """Return the profile of the target's model, with the hosted tools of the client's own API."""
    profile = target.model_profile
    return replace(profile, hosted=_RESPONSES_STYLES) if api is NativeApi.RESPONSES else profile


def _is_foreign(tool: JsonObject, own: str) -> bool:
    kind = tool.get("type")
    if kind in ("function", "custom") or (kind is None and len(tool) != 1):
        return False
    read = hosted_tool(tool)
    return read is not None and read.api != own
