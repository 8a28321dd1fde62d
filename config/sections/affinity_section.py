"""The `affinity` section of defaults, vendors, models and routes: which requests go to the deployment that served their
conversation before."""

from typing import Annotated, Final

from pydantic import Field

from config.sections.section import SwitchableSection
from config.sections.value_types import AutoOrOff, LeastTokens, Referable, SessionField, Switch

MOST_FIELDS: Final = 16
"""The most names in one `key`. For each request, the names are looked up in order until the request has one, so each
name costs time."""

_Load = Annotated[float, Field(ge=1, le=100), Referable()]


class AffinitySection(SwitchableSection):
    """Which requests go to the deployment that served their conversation before, whose prompt cache holds its
    beginning. `auto` and `off` may be written as the bare word. The nearest level that has the section decides all of
    it, as with `cache`. It applies under the policies weighted, round_robin and least_busy; under fastest only if it is
    written at the name itself; under priority never. Health, limits and the abilities of a deployment come first."""

    mode: AutoOrOff = Field(
        default="auto", description="Whether requests are distributed by their conversation (auto) or not (off)."
    )
    key: list[SessionField] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_FIELDS,
        description="The headers, or fields of the body, that identify a conversation. The first one that a request "
        "has counts. A dot leads into a field: metadata.user_id. The word prompt stands for a digest of tools, system "
        "text and the first turn of the user. Built in: headers of the gateway and of agents, prompt_cache_key, and "
        "prompt.",
    )
    load: _Load = Field(
        default=1.5,
        description="A deployment is skipped while its requests in flight exceed this multiple of its share of all "
        "requests in flight, and exceed 4.",
    )
    least: LeastTokens = Field(
        default=1024,
        description="Prompts with fewer estimated tokens are distributed by the policy alone, since vendors do not "
        "cache them. A body counts a token for every 4 bytes.",
    )
    send: Switch = Field(
        default=False,
        description="Whether a digest of the conversation is sent to vendors that distribute requests by a field or "
        "header, if the client sent none: prompt_cache_key at OpenAI, Azure and xAI, x-session-affinity at Fireworks, "
        "x-grok-conv-id at xAI.",
    )
