"""The sections of a team and of its keys."""

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from config.sections.limits_section import Budgets, EachUserSection, LimitsSection, OnLimit, TeamLimitsSection
from config.sections.media_section import MediaSection
from config.sections.plugins_section import NamedPlugin
from config.sections.route_section import RouteSection
from config.sections.section import Section, ShorthandSection
from config.sections.value_types import (
    AllowedName,
    Checked,
    ContextBehavior,
    KeyDigest,
    KeyName,
    Moment,
    OnUnsupported,
    RouteName,
    Switch,
    TagName,
    refuse,
)

_MOST_TAGS: Final = 16
_LONGEST_TAG: Final = 256
"""What the ledger keeps of a request is bounded: characters of a tag's value."""


class TeamKey(ShorthandSection):
    """A key of a team; a bare digest is a key without a name that does not expire."""

    short_form: ClassVar[str] = "a digest"

    hash: KeyDigest | None = Field(
        default=None, description="The key's SHA-256 digest, as `dragoman key new` prints it. Required."
    )
    name: KeyName | None = Field(
        default=None, description="What the log, metrics and the ledger call the key, such as who holds it."
    )
    expires: Moment | None = Field(
        default=None,
        description="When the key ends, without a reload: a time with its zone, or a date, to the end of that day in "
        "UTC. From then on requests with it are refused, and told when it ended.",
    )
    models: Annotated[list[AllowedName], Field(min_length=1)] | None = Field(
        default=None,
        description="Names that may be asked for with this key, within those that the team may ask for. Built in: all "
        "of them.",
    )
    limits: LimitsSection = Field(
        default=LimitsSection(), description="The most that may be used with this key, within what the team may use."
    )
    budget: Budgets = Field(
        default_factory=list, description="What may be spent with this key, within what the team may spend."
    )
    key: KeyDigest | None = Field(default=None, description="The older name of hash.")
    not_after: Moment | None = Field(default=None, description="The older name of expires.")

    @property
    def digest(self) -> str:
        """The key's digest, `sha256:` and 64 hex digits."""
        return self.hash or self.key or ""

    @property
    def digest_key(self) -> Literal["hash", "key"]:
        """The key of the table under which the digest is written."""
        return "hash" if self.key is None else "key"

    @property
    def expires_key(self) -> Literal["expires", "not_after"]:
        """The key of the table under which the expiry is written."""
        return "expires" if self.not_after is None else "not_after"

    @property
    def ends(self) -> float:
        """Expiry in unix seconds; infinity for a key that does not expire."""
        moment = self.expires or self.not_after
        return math.inf if moment is None else moment.timestamp()

    @property
    def label(self) -> str:
        """The key's name, or the first 8 hex digits of its digest."""
        return self.name or self.digest.removeprefix("sha256:")[:8]

    @classmethod
    def short_form_schema(cls) -> JsonSchemaValue:
        return TypeAdapter(KeyDigest).json_schema()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        section = handler.resolve_ref_schema(handler(schema))
        one_digest = [{"required": ["hash"]}, {"required": ["key"]}]
        return {"anyOf": [cls.short_form_schema(), {**section, "oneOf": one_digest}]}

    @model_validator(mode="before")
    @classmethod
    def _from_digest(cls, value: object) -> object:
        return {"hash": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if self.hash is None and self.key is None:
            raise refuse("required key hash is missing")
        for name, older in (("hash", "key"), ("expires", "not_after")):
            if getattr(self, name) is not None and getattr(self, older) is not None:
                raise refuse(f"{older} is the older name of {name}: keep one of them")
        return self


def _check_tag(value: str) -> str:
    if not value or len(value) > _LONGEST_TAG or not value.isprintable():
        raise refuse(f"must be 1 to {_LONGEST_TAG} printable characters")
    return value


def _few_tags(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > _MOST_TAGS:
        raise refuse(f"must be at most {_MOST_TAGS} tags")
    return tags


TagValue = Annotated[str, Checked(_check_tag, {"minLength": 1, "maxLength": _LONGEST_TAG})]
Tags = Annotated[dict[TagName, TagValue], AfterValidator(_few_tags)]
KeysOfFile = Annotated[list[TeamKey], WithJsonSchema({"title": "path", "type": "string"})]
"""The text in the table is a path; the loader puts the entries of that file in its place."""

_NO_LIMITS: Final = TeamLimitsSection()
"""One for all teams without limits: a default that is no factory is copied for each, since it holds a mapping."""


class TeamSection(Section):
    """Who may call, which names they may ask for, and how much they may use. A team needs keys or keys_from."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["keys"], "properties": {"keys": {"minItems": 1, "description": "One at least."}}},
                {"required": ["keys_from"]},
            ]
        }
    )

    keys: list[TeamKey] = Field(
        default=[],
        description="SHA-256 digests of the team's keys, as `dragoman key new` prints them. Several while they are "
        "exchanged.",
    )
    keys_from: KeysOfFile = Field(
        default_factory=list,
        description="A YAML file with a list of further keys, relative to this file. It is watched like the table, so "
        "that another program can issue keys. It holds no references.",
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
    limits: TeamLimitsSection = Field(
        default_factory=lambda: _NO_LIMITS, description="The most that the team may use, over all its keys."
    )
    budget: Budgets = Field(
        default_factory=list,
        description="What the team may spend: one budget, or a list of them, which all hold. Of what they say at once "
        "reject comes before route, and route before warn.",
    )
    each_user: EachUserSection | None = Field(
        default=None,
        description="Limits and budgets of each end user of the team. Built in: the section of the whole config file, "
        "which this one replaces as a whole.",
    )
    on_limit: OnLimit = Field(
        default="reject",
        description="What happens to a request that a limit does not let through: reject, or {queue: 5s}, which waits "
        "so long for the limits of the team, its keys and all clients first.",
    )
    tags: Tags = Field(
        default_factory=dict,
        description="Words that the ledger keeps with each request of the team, such as its cost_center, and that "
        f"`dragoman usage` can sum by. {_MOST_TAGS} at most.",
    )
    plugins: list[NamedPlugin] | None = Field(
        default=None,
        description="The guards that the team's requests and answers pass, in this order; an empty list: none. Built "
        "in: all guards of the table, in its order.",
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

    def every_key(self) -> Iterator[tuple[Literal["keys", "keys_from"], int, TeamKey]]:
        """Yield the keys of the table and of the file, each with where it stands."""
        for index, own in enumerate(self.keys):
            yield "keys", index, own
        for index, own in enumerate(self.keys_from):
            yield "keys_from", index, own
