"""The sections of routes: names of our own over models, their targets and fallbacks."""

from pydantic import Field, model_validator

from config.sections.affinity_section import AffinitySection
from config.sections.cache_section import CacheSection
from config.sections.failover_section import HedgeSection
from config.sections.section import Section, ShorthandSection
from config.sections.value_types import Policy, Switch, TargetName, Weight

WEIGHT = "Its share under policy weighted, what it can carry under least_busy. 0 takes it out, except under priority."
LISTED = "Whether the list of models names it to those who may use it. A name that is not listed works all the same."
POLICIES = (
    "priority: as written. weighted: drawn by weight. round_robin: in turn. least_busy: the fewest requests under way"
    " for its weight. fastest: the soonest usual first byte, and any for one request in twenty, so that a slow one is"
    " seen to recover."
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
    """Where a request goes that the targets of its route cannot answer for what it holds. Models or deployments."""

    context_window: list[TargetName] = Field(default=[], description="When the prompt is too long for a target.")
    content_filter: list[TargetName] = Field(default=[], description="When a target's content filter refuses it.")


class RouteSection(ShorthandSection):
    """A name of our own over models; a bare name is a route with one target. A route whose only target is another
    route, or a model, has the `fallbacks`, `same_space`, `cache`, `affinity` and `hedge` of its target, except the
    settings written at the route."""

    targets: list[RouteTarget] = Field(min_length=1, description="What the name stands for.")
    policy: Policy = Field(default="priority", description=f"In which order the targets are tried. {POLICIES}")
    fallbacks: FallbacksSection = Field(
        default=FallbacksSection(),
        description="Where requests go instead that no target can answer for what they hold. Written here, they "
        "replace the fallbacks of an only target as a whole.",
    )
    same_space: Switch = Field(
        default=False,
        description="Whether the vectors of all targets may be compared with each other. Without it embeddings are "
        "refused on a route over several models; the deployments of one model always have the same space.",
    )
    cache: CacheSection | None = Field(
        default=None,
        description="Which answers are given again to equal requests for this name. None written: as its only target, "
        "or else `defaults`, has it.",
    )
    affinity: AffinitySection | None = Field(
        default=None,
        description="Which requests go to the target that served their conversation before. None written: as its only "
        "target, or else `defaults`, has it.",
    )
    hedge: HedgeSection | None = Field(
        default=None,
        description="When a request that is late gets a second attempt at another target. None written: as its only "
        "target, or else `defaults`, has it.",
    )
    listed: Switch = Field(default=True, description=LISTED)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        return {"targets": [value]} if isinstance(value, str) else value


ROUTE_SETTINGS = tuple(name for name in RouteSection.model_fields if name not in ("targets", "policy", "listed"))
"""The settings that a name over one route or model takes from that one, if they are not written at the name itself."""
