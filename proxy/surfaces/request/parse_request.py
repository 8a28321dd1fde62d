"""Parses request bytes into a `UnifiedRequest`: checks each field, then conflicts between fields.

Every problem of a body is found before it is refused.
"""

from collections.abc import Iterable
from typing import cast

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
from proxy.surfaces.request.field_conflicts import STEPS
from proxy.surfaces.request.parse_json import load
from proxy.surfaces.request.parse_state import ParsedFields, SurfaceRules
from proxy.surfaces.request.rule_kinds import Invalid


def parse(rules: SurfaceRules, operation: Operation, body: bytes, default_model: str | None) -> UnifiedRequest:
    """Return the checked request; a missing `model` is `default_model`. Raises GatewayError with all problems."""
    return parse_fields(rules, operation, load(body, rules.fields[operation]), default_model)


def parse_fields(
    rules: SurfaceRules,
    operation: Operation,
    data: JsonObject,
    default_model: str | None,
    refused: Iterable[tuple[str, Invalid]] = (),
) -> UnifiedRequest:
    """Return the request of fields under the unified names; those `refused` before have their problems already. Raises
    GatewayError with all problems."""
    fields = rules.fields[operation]
    parsed = ParsedFields(rules, operation)
    for name, bad in refused:
        parsed.refuse(name, bad)
    for name, value in data.items():
        if value is None:
            continue
        check = fields.get(name)
        if check is None:
            # Names that some server reads as a protected member are refused too.
            try:
                parsed.unknown[name] = extras.member(name, value)
            except Invalid as bad:
                parsed.refuse(name, bad)
            continue
        try:
            parsed.values[name] = check(value)
        except Invalid as bad:
            parsed.refuse(name, bad)
    for step in STEPS:
        step(parsed)
    return make_request(parsed, default_model)


def make_request(parsed: ParsedFields, default_model: str | None) -> UnifiedRequest:
    """Return the request of checked fields without conflicts. Raises GatewayError with all problems."""
    values, operation = parsed.values, parsed.operation
    model = parsed.take("model", str)
    if model is None:
        model = default_model
        if model is None and not parsed.refused("model"):
            parsed.refuse("model", Invalid("is required"))
    prompt = values.pop(PROMPT_FIELDS[operation], None)
    if prompt is None and not parsed.refused(*PROMPT_FIELDS.values()):
        parsed.refuse(PROMPT_FIELDS[operation], Invalid("is required"))
    if parsed.problems or model is None or not isinstance(prompt, TextPrompt | TokenPrompt | ChatPrompt):
        raise invalid_request(tuple(parsed.problems))
    stream = values.pop("stream", False) is True
    options = parsed.take("stream_options", StreamOptions)
    timeout = parsed.take("inference_timeout", float)
    extra_params, extra_headers = (
        parsed.take(name, dict) for name in ("inference_extra_params", "inference_extra_headers")
    )
    defaults = parsed.rules.defaults[operation]
    injected = [name for name in defaults if name not in values]
    for name in injected:
        values[name] = defaults[name]
    return UnifiedRequest(
        operation,
        model,
        prompt,
        cast(Params, values),
        stream,
        options or NO_STREAM_OPTIONS,
        frozenset(injected),
        parsed.unknown or None,
        timeout,
        extra_params,
        extra_headers,
        parsed.legacy_calls,
    )
