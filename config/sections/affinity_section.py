"""The `affinity` section of defaults, vendors, models and routes: which requests go to the deployment that served their
conversation before."""

from typing import Annotated, Final

from pydantic import Field

from config.sections.section import SwitchableSection
from config.sections.value_types import AutoOrOff, LeastTokens, Referable, SessionField, Switch

MOST_FIELDS: Final = 16
"""Names in one `key`: each costs a request that has none of those before it."""

_Load = Annotated[float, Field(ge=1, le=100), Referable()]


class AffinitySection(SwitchableSection):
    """Which requests go to the deployment that served their conversation before, whose prompt cache has its beginning.
    `auto` and `off` may be written as the bare word. The nearest level that has the section decides all of it, as with
    `cache`. It holds under the policies weighted, round_robin and least_busy, under fastest if it is written at the
    name itself, and under priority never. Health, limits, and what a deployment can honour come first."""

    mode: AutoOrOff = Field(
        default="auto", description="Whether requests go by their conversation (auto) or not (off)."
    )
    key: list[SessionField] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_FIELDS,
        description="The headers, or fields of the body, that name a conversation; the first that a request has "
        "counts. A dot leads into a field: metadata.user_id. The word prompt stands for a digest of tools, system text "
        "and the first turn of the user. Built in: headers of the gateway and of agents, prompt_cache_key, and prompt.",
    )
    load: _Load = Field(
        default=1.5,
        description="A deployment is skipped while its requests in flight are more than so many times its share of all "
        "in flight, and more than 4.",
    )
    least: LeastTokens = Field(
        default=1024,
        description="Prompts that are estimated to have fewer tokens go by the policy alone: vendors cache none of "
        "them. A body counts a token for every 4 bytes.",
    )
    send: Switch = Field(
        default=False,
        description="Whether vendors that place requests by a field or header get a digest of the conversation there, "
        "if the client gave none: prompt_cache_key at OpenAI, Azure and xAI, x-session-affinity at Fireworks, "
        "x-grok-conv-id at xAI.",
    )
