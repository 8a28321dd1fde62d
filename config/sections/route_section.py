"""The sections of routes: the operator's own names for models, their targets and fallbacks."""

from pydantic import Field, model_validator

from config.sections.affinity_section import AffinitySection
from config.sections.cache_section import CacheSection
from config.sections.failover_section import HedgeSection
from config.sections.section import Section, ShorthandSection
from config.sections.value_types import Policy, Switch, TargetName, Weight

WEIGHT = (
    "Its share under policy weighted, its relative capacity under least_busy. 0 excludes it, except under priority."
)
LISTED = "Whether the list of models has the name, for clients that may use it. A name that is not listed still works."
POLICIES = (
    "priority: as written. weighted: at random by weight. round_robin: in turn. least_busy: the fewest requests in"
    " flight for its weight. fastest: the shortest typical time to the first byte; one request in twenty goes to any"
    " target, so that the recovery of a slow one is noticed."
)


class RouteTarget(ShorthandSection):
    """One target of a route; a bare name is a target of weight 1."""

    target: TargetName = Field(description="A model, a model's deployment, or another route.")
    weight: Weight = Field(default=1, description=WEIGHT)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        return {"target": value} if isinstance(value, str) else value


class FallbacksSection(Section):
    """The targets of a request whose content the targets of its route cannot process. Models or deployments."""

    context_window: list[TargetName] = Field(default=[], description="When the prompt is too long for a target.")
    content_filter: list[TargetName] = Field(
        default=[], description="When a target's content filter refuses the request."
    )


class RouteSection(ShorthandSection):
    """Your own name for models; a bare name is a route with one target. A route whose only target is another route, or
    a model, has the `fallbacks`, `same_space`, `cache`, `affinity` and `hedge` of its target, except the settings
    written at the route."""

    targets: list[RouteTarget] = Field(
        min_length=1, description="The models, deployments or routes that the name stands for."
    )
    policy: Policy = Field(default="priority", description=f"The order in which the targets are tried. {POLICIES}")
    fallbacks: FallbacksSection = Field(
        default=FallbacksSection(),
        description="Where requests go whose content no target can process. Fallbacks written here replace all "
        "fallbacks of an only target.",
    )
    same_space: Switch = Field(
        default=False,
        description="Whether the embeddings of all targets can be compared with each other. Without it, embeddings are "
        "refused on a route over several models; the deployments of one model always have the same space.",
    )
    cache: CacheSection | None = Field(
        default=None,
        description="Which responses are cached for equal requests to this name. None written: as its only target, or "
        "else `defaults`, has it.",
    )
    affinity: AffinitySection | None = Field(
        default=None,
        description="Which requests go to the target that served their conversation before. None written: as its only "
        "target, or else `defaults`, has it.",
    )
    hedge: HedgeSection | None = Field(
        default=None,
        description="When a late request gets a second attempt at another target. None written: as its only target, "
        "or else `defaults`, has it.",
    )
    listed: Switch = Field(default=True, description=LISTED)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        return {"targets": [value]} if isinstance(value, str) else value


ROUTE_SETTINGS = tuple(name for name in RouteSection.model_fields if name not in ("targets", "policy", "listed"))
"""The settings that a name with only one target takes from that target, unless they are written at the name itself."""
