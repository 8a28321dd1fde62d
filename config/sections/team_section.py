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
"""The most tags of a request (`_MOST_TAGS`), and the most characters of a tag's value. The ledger stores only bounded
texts of a request."""


class TeamKey(ShorthandSection):
    """A key of a team; a bare digest is a key without a name that does not expire."""

    short_form: ClassVar[str] = "a digest"

    hash: KeyDigest | None = Field(
        default=None, description="The key's SHA-256 digest, as `dragoman key new` prints it. Required."
    )
    name: KeyName | None = Field(
        default=None,
        description="The name of the key in the log, metrics and the ledger, such as the name of its holder.",
    )
    expires: Moment | None = Field(
        default=None,
        description="When the key expires, without a reload: a time with its zone, or a date, to the end of that day "
        "in UTC. From then on requests with it are refused, with the time of expiry.",
    )
    models: Annotated[list[AllowedName], Field(min_length=1)] | None = Field(
        default=None,
        description="Names that may be requested with this key, among the names that the team may request. Built in: "
        "all of them.",
    )
    limits: LimitsSection = Field(
        default=LimitsSection(), description="The most that may be used with this key, within the limits of the team."
    )
    budget: Budgets = Field(
        default_factory=list, description="The most that may be spent with this key, within the budget of the team."
    )
    key: KeyDigest | None = Field(default=None, description="The older name of hash.")
    not_after: Moment | None = Field(default=None, description="The older name of expires.")

    @property
    def digest(self) -> str:
        """The key's digest, `sha256:` and 64 hex digits."""
        return self.hash or self.key or ""

    @property
    def digest_key(self) -> Literal["hash", "key"]:
        """The key of the configuration under which the digest is written."""
        return "hash" if self.key is None else "key"

    @property
    def expires_key(self) -> Literal["expires", "not_after"]:
        """The key of the configuration under which the expiry is written."""
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
    def _check_key_names(self) -> Self:
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


def _check_tag_count(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > _MOST_TAGS:
        raise refuse(f"must be at most {_MOST_TAGS} tags")
    return tags


TagValue = Annotated[str, Checked(_check_tag, {"minLength": 1, "maxLength": _LONGEST_TAG})]
Tags = Annotated[dict[TagName, TagValue], AfterValidator(_check_tag_count)]
KeysOfFile = Annotated[list[TeamKey], WithJsonSchema({"title": "path", "type": "string"})]
"""The text in the configuration is a path. The loader replaces it by the entries of that file."""

_NO_LIMITS: Final = TeamLimitsSection()
"""One object for all teams without limits: pydantic copies a default that is no factory for each team, since it holds a
mapping."""


class TeamSection(Section):
    """The clients of a team, the names that they may request, and how much they may use. A team needs keys or
    keys_from."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["keys"], "properties": {"keys": {"minItems": 1, "description": "At least one."}}},
                {"required": ["keys_from"]},
            ]
        }
    )

    keys: list[TeamKey] = Field(
        default=[],
        description="SHA-256 digests of the team's keys, as `dragoman key new` prints them. List several while keys "
        "are replaced.",
    )
    keys_from: KeysOfFile = Field(
        default_factory=list,
        description="A YAML file with a list of further keys, relative to this file. It is watched like the config "
        "file, so that another program can issue keys. It holds no references.",
    )
    models: list[AllowedName] = Field(
        default=[],
        description="Names that the team may request: *, vendor/*, a model with its deployments, a deployment, or a "
        "route. A name allows everything that a request for it reaches. Built in: none.",
    )
    routes: dict[RouteName, RouteSection] = Field(
        default={},
        description="The team's own routes, which it may request without listing them in models. They come first "
        "inside other routes too.",
    )
    limits: TeamLimitsSection = Field(
        default_factory=lambda: _NO_LIMITS, description="The most that the team may use, over all its keys."
    )
    budget: Budgets = Field(
        default_factory=list,
        description="The most that the team may spend: one budget, or a list of budgets that all apply. If several "
        "actions apply at once, reject comes before route, and route before warn.",
    )
    each_user: EachUserSection | None = Field(
        default=None,
        description="Limits and budgets of each end user of the team. Built in: the each_user of the whole "
        "configuration, which this section replaces as a whole.",
    )
    on_limit: OnLimit = Field(
        default="reject",
        description="The action for a request that exceeds a limit: reject, or {queue: 5s}, which first waits for up "
        "to this time until the limits of the team, its keys and all clients allow it.",
    )
    tags: Tags = Field(
        default_factory=dict,
        description="Words that the ledger stores with each request of the team, such as its cost_center, and by "
        f"which `dragoman usage` can sum. {_MOST_TAGS} at most.",
    )
    plugins: list[NamedPlugin] | None = Field(
        default=None,
        description="The guards that check the team's requests and responses, in this order; an empty list: none. "
        "Built in: all guards of the configuration, in its order.",
    )
    on_unsupported: OnUnsupported = Field(
        default=None, description="As for a deployment, for this team's requests. Built in: the deployment's."
    )
    context_length_exceeded_behavior: ContextBehavior = Field(
        default=None, description="As for a deployment, for this team's requests. Built in: the deployment's."
    )
    media: MediaSection = Field(
        default=MediaSection(), description="As for a deployment, for this team's requests. Built in: the deployment's."
    )
    inference_extra_params: Switch = Field(
        default=True,
        description="Whether the team may send inference_extra_params, and fields outside the unified request, which "
        "also reach the upstream unchanged.",
    )
    inference_extra_headers: Switch = Field(
        default=True,
        description="Whether the team may send inference_extra_headers: tracing, the vendors' documented switches, "
        "and the names in a deployment's allow_headers.",
    )

    def every_key(self) -> Iterator[tuple[Literal["keys", "keys_from"], int, TeamKey]]:
        """Yield the keys of the configuration and of the file, each with its list and its index."""
        for index, own in enumerate(self.keys):
            yield "keys", index, own
        for index, own in enumerate(self.keys_from):
            yield "keys_from", index, own
