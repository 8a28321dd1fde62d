"""Request bytes to a `UnifiedRequest`: each field by the table, then how fields bear on each other.

Never knows an endpoint, an envelope, or which deployment will answer. Every problem of a body is found before it is
refused.
"""

from typing import cast

from providers.unified import (
    NO_STREAM_OPTIONS,
    ChatPrompt,
    JsonValue,
    Operation,
    Params,
    StreamOptions,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
)
from proxy.errors import invalid_request
from proxy.surfaces import extras
from proxy.surfaces.body import load
from proxy.surfaces.checks import Invalid
from proxy.surfaces.draft import Draft, Rules
from proxy.surfaces.resolve import STEPS

PROMPT = {Operation.COMPLETIONS: "prompt", Operation.CHAT: "messages"}


def parse(rules: Rules, operation: Operation, body: bytes, default_model: str | None) -> UnifiedRequest:
    """A checked request; `default_model` stands in for a missing model. Raises GatewayError with all problems."""
    fields = rules.fields[operation]
    data = load(body, fields)
    draft = Draft(rules, operation)
    unknown: dict[str, JsonValue] = {}
    for name, value in data.items():
        if value is None:
            continue
        check = fields.get(name)
        if check is None:
            # What reads like a protected member to some server is one.
            try:
                unknown[name] = extras.member(name, value)
            except Invalid as bad:
                draft.refuse(name, bad)
            continue
        try:
            draft.values[name] = check(value)
        except Invalid as bad:
            draft.refuse(name, bad)
    for step in STEPS:
        step(draft)
    return _request(draft, unknown, default_model)


def _request(draft: Draft, unknown: dict[str, JsonValue], default_model: str | None) -> UnifiedRequest:
    values, operation = draft.values, draft.operation
    model = draft.take("model", str)
    if model is None:
        model = default_model
        if model is None and not draft.refused("model"):
            draft.refuse("model", Invalid("is required"))
    prompt = values.pop(PROMPT[operation], None)
    if prompt is None and not draft.refused(*PROMPT.values()):
        draft.refuse(PROMPT[operation], Invalid("is required"))
    if draft.problems or model is None or not isinstance(prompt, TextPrompt | TokenPrompt | ChatPrompt):
        raise invalid_request(tuple(draft.problems))
    stream = values.pop("stream", False) is True
    options = draft.take("stream_options", StreamOptions)
    timeout = draft.take("inference_timeout", float)
    extra_params, extra_headers = (
        draft.take(name, dict) for name in ("inference_extra_params", "inference_extra_headers")
    )
    defaults = draft.rules.defaults[operation]
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
        unknown or None,
        timeout,
        extra_params,
        extra_headers,
    )
