"""The sections of a team and of its keys."""

import math
from typing import ClassVar

from pydantic import Field, TypeAdapter, model_validator
from pydantic.json_schema import JsonSchemaValue

from config.sections.media_section import MediaSection
from config.sections.route_section import RouteSection
from config.sections.section import Section, ShorthandSection
from config.sections.value_types import (
    AllowedName,
    ContextBehavior,
    KeyDigest,
    KeyName,
    Moment,
    OnUnsupported,
    RouteName,
    Switch,
)


class TeamKey(ShorthandSection):
    """A key of a team; a bare digest is a key that does not expire."""

    short_form: ClassVar[str] = "a digest"

    key: KeyDigest = Field(description="The key's SHA-256 digest, as `dragoman key new` prints it.")
    name: KeyName | None = Field(default=None, description="What the log calls the key, such as who holds it.")
    not_after: Moment | None = Field(
        default=None,
        description="When the key ends, without a reload: a time with its zone, or a date, to the end of that day in "
        "UTC. From then on requests with it are refused, and told when it ended.",
    )

    @property
    def ends(self) -> float:
        """Expiry in unix seconds; infinity for a key that does not expire."""
        return math.inf if self.not_after is None else self.not_after.timestamp()

    @classmethod
    def short_form_schema(cls) -> JsonSchemaValue:
        return TypeAdapter(KeyDigest).json_schema()

    @model_validator(mode="before")
    @classmethod
    def _from_digest(cls, value: object) -> object:
        return {"key": value} if isinstance(value, str) else value


class TeamSection(Section):
    """Who may call, and which names they may ask for."""

    keys: list[TeamKey] = Field(
        min_length=1,
        description="SHA-256 digests of the team's keys, as `dragoman key new` prints them. Several while they are "
        "exchanged.",
    )
    models: list[AllowedName] = Field(
        default=[],
        description="Names the team may ask for: *, vendor/*, a model with its deployments, a deployment, or a route. "
        "Each grants what a request for it reaches. None unless listed.",
    )
    routes: dict[RouteName, RouteSection] = Field(
        default={},
        description="The team's own meaning of names, granted by being written; first inside other routes too.",
    )
    on_unsupported: OnUnsupported = Field(
        default=None, description="As of a deployment, for this team's requests. Built in: the deployment's."
    )
    context_length_exceeded_behavior: ContextBehavior = Field(
        default=None, description="As of a deployment, for this team's requests. Built in: the deployment's."
    )
    media: MediaSection = Field(
        default=MediaSection(), description="As of a deployment, for this team's requests. Built in: the deployment's."
    )
    inference_extra_params: Switch = Field(
        default=True,
        description="Whether the team may send inference_extra_params, and fields outside the unified request, which "
        "would reach the upstream as they are too.",
    )
    inference_extra_headers: Switch = Field(
        default=True,
        description="Whether the team may send inference_extra_headers: tracing, the vendors' documented switches, and "
        "what a deployment's allow_headers adds.",
    )
