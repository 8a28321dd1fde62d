"""Filling in the middle, as Mistral serves it and editors ask for it: a prompt and a suffix in, chat's shape out.

Never another path: with `suffix` on text completions the same is to be had in their own shape.

Sources: `mistralai` 3.7.0 types `FIMCompletionRequest` and `FIMCompletionResponse`; what Continue's adapter for
`{base}/fim/completions` and Tabby's Mistral client send and read, November 2026.
"""

from collections.abc import Mapping
from typing import ClassVar

from providers.unified import Operation
from proxy.surfaces.chat import ChatRenderer
from proxy.surfaces.checks import INT64_MIN, integer
from proxy.surfaces.draft import Rules
from proxy.surfaces.fields import FIELDS
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.row import SurfaceRow
from proxy.surfaces.surface import Endpoint


class FimRenderer(ChatRenderer):
    """Chat's shape; each delta has its text, even where it is empty, because Tabby reads it without looking."""

    __slots__ = ()

    no_delta: ClassVar[Mapping[str, object]] = {"content": ""}


FIM = SurfaceRow(
    name=OPENAI.name,
    endpoints=tuple(Endpoint("POST", f"{base}/fim/completions", Operation.COMPLETIONS) for base in ("/v1", "")),
    prefixes=("/v1/fim", "/fim"),
    key_headers=OPENAI.key_headers,
    default_vendor=OPENAI.default_vendor,
    rules=Rules(
        {
            Operation.COMPLETIONS: {**FIELDS[Operation.COMPLETIONS], "random_seed": integer(INT64_MIN)},
        },
        # At the end of a file there is no suffix, and it is to be continued all the same, not talked about.
        {Operation.COMPLETIONS: {"suffix": "", "context_length_exceeded_behavior": "error"}},
    ),
    style=OPENAI.style,
    validation_status=OPENAI.validation_status,
    envelope=OPENAI.envelope,
    renderers={Operation.COMPLETIONS: FimRenderer},
)
