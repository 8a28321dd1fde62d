"""Parses request bytes into a `UnifiedRequest`: checks each field, then conflicts between fields.

All problems of a body are collected before it is refused.
"""

from collections.abc import Iterable
from typing import Final, cast

from providers.client_extras.proxy_instructions import TIMEOUTS
from providers.json_types import JsonObject
from providers.request_fields import PROMPT_FIELDS
from providers.unified_request import (
    NO_STREAM_OPTIONS,
    ChatPrompt,
    Operation,
    Params,
    StreamOptions,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
)
from proxy.errors import invalid_request
from proxy.surfaces.request import pass_through_fields as extras
from proxy.surfaces.request.field_conflicts import resolve
from proxy.surfaces.request.parse_json import load
from proxy.surfaces.request.parse_state import ParsedFields, SurfaceRules
from proxy.surfaces.request.rule_kinds import Invalid

_PROMPTS: Final = (TextPrompt, TokenPrompt, ChatPrompt)

_Attributes = tuple[StreamOptions, float | None, JsonObject | None, dict[str, str] | None]

_ATTRIBUTE_FIELDS: Final = frozenset(
    {"stream_options", "inference_timeout", "inference_extra_params", "inference_extra_headers"}
)
"""Fields that become separate attributes of the request. Most requests do not have them."""

_TIMEOUTS: Final = frozenset(TIMEOUTS)

_NO_ATTRIBUTES: Final[_Attributes] = (NO_STREAM_OPTIONS, None, None, None)


def parse(rules: SurfaceRules, operation: Operation, body: bytes, default_model: str | None) -> UnifiedRequest:
    """Return the checked request, with `default_model` as its model if the body has no `model`. Raises GatewayError
    with all problems."""
    return parse_fields(rules, operation, load(body, rules.fields[operation]), default_model)


def parse_fields(
    rules: SurfaceRules,
    operation: Operation,
    data: JsonObject,
    default_model: str | None,
    refused: Iterable[tuple[str, Invalid]] = (),
) -> UnifiedRequest:
    """Return the request of fields under the unified names, with `default_model` as its model if `model` is missing.
    `refused` are fields whose problems were found before; these problems are reported too. Raises GatewayError with all
    problems."""
    fields = rules.fields[operation]
    parsed = ParsedFields(rules, operation)
    values = parsed.values
    for name, bad in refused:
        parsed.refuse(name, bad)
    if not _TIMEOUTS.isdisjoint(data):
        data = extras.with_own_timeout(data)
    for name, value in data.items():
        if value is None:
            continue
        check = fields.get(name)
        if check is None:
            # Names that some servers read as the name of a protected field are refused too.
            try:
                parsed.unknown[name] = extras.unknown_field(name, value)
            except Invalid as bad:
                parsed.refuse(name, bad)
            continue
        try:
            values[name] = check(value)
        except Invalid as bad:
            parsed.refuse(name, bad)
    resolve(parsed)
    return make_request(parsed, default_model)


def make_request(parsed: ParsedFields, default_model: str | None) -> UnifiedRequest:
    """Return the request of checked fields without conflicts. Raises GatewayError with all problems."""
    values, operation = parsed.values, parsed.operation
    model = values.pop("model", default_model)
    if model is None and not parsed.refused("model"):
        parsed.refuse("model", Invalid("is required"))
    prompt = values.pop(PROMPT_FIELDS[operation], None)
    if prompt is None and not parsed.refused(*PROMPT_FIELDS.values()):
        parsed.refuse(PROMPT_FIELDS[operation], Invalid("is required"))
    if parsed.problems or not isinstance(model, str) or not isinstance(prompt, _PROMPTS):
        raise invalid_request(tuple(parsed.problems))
    stream = values.pop("stream", False) is True
    own = _NO_ATTRIBUTES if _ATTRIBUTE_FIELDS.isdisjoint(values) else _take_attributes(parsed)
    options, timeout, extra_params, extra_headers = own
    defaults, injected = parsed.rules.defaults[operation], parsed.rules.default_names[operation]
    if not injected.isdisjoint(values):
        defaults = {name: value for name, value in defaults.items() if name not in values}
        injected = frozenset(defaults)
    values.update(defaults)
    return UnifiedRequest(
        operation,
        model,
        prompt,
        cast(Params, values),
        stream,
        options,
        injected,
        parsed.unknown or None,
        timeout,
        extra_params,
        extra_headers,
        parsed.legacy_calls,
    )


def _take_attributes(parsed: ParsedFields) -> _Attributes:
    return (
        parsed.take("stream_options", StreamOptions) or NO_STREAM_OPTIONS,
        parsed.take("inference_timeout", float),
        parsed.take("inference_extra_params", dict),
        parsed.take("inference_extra_headers", dict),
    )
