"""Mistral's fill-in-the-middle API, which editors use. The request has a prompt and a suffix; the response has the form
of a chat response.

Sources: `mistralai` 3.7.0 types `FIMCompletionRequest` and `FIMCompletionResponse`; the requests of Continue's adapter
for `{base}/fim/completions` and of Tabby's Mistral client, and the fields that they read, November 2026.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from providers.unified_request import Operation
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.request.field_rules import FIELDS
from proxy.surfaces.request.parse_state import SurfaceRules
from proxy.surfaces.request.rule_kinds import INT64_MIN, integer
from proxy.surfaces.response.chat import ChatRenderer
from proxy.surfaces.surface import Endpoint


class FimRenderer(ChatRenderer):
    """Renders chat responses in which every delta has `content`, even if it is empty, because Tabby reads `content`
    without a check."""

    __slots__ = ()

    no_delta: ClassVar[Mapping[str, object]] = {"content": ""}


FIM = replace(
    OPENAI,
    endpoints=tuple(Endpoint("POST", f"{base}/fim/completions", Operation.COMPLETIONS) for base in ("/v1", "")),
    prefixes=("/v1/fim", "/fim"),
    rules=SurfaceRules(
        {Operation.COMPLETIONS: {**FIELDS[Operation.COMPLETIONS], "random_seed": integer(INT64_MIN)}},
        # At the end of a file a request has no suffix. Without the empty suffix as the default, a chat model would talk
        # about the text instead of continuing it.
        {Operation.COMPLETIONS: {"suffix": "", "context_length_exceeded_behavior": "error"}},
    ),
    renderers={Operation.COMPLETIONS: FimRenderer},
)
