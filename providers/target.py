"""A target: a deployment of the configuration that can be called, with its settings, prices and permits."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from providers.pricing import Price
from providers.profile import Profile
from providers.unified_request import ContextBehavior
from providers.vendor_credential import Authorities, Credential

if TYPE_CHECKING:
    from providers.dialect import Dialect

OnUnsupported = Literal["error", "drop"]
"""The action for a field that a deployment does not support."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The settings below `timeouts`, in seconds: deadlines of one attempt, and the longest silence towards a client.

    `answer` may be `None` (as long as `total` allows), and `keep_alive` may be `None` (no keep-alives). `written` names
    the settings that the operator wrote.
    """

    connect: float
    first_event: float
    idle: float
    total: float
    progress: float = math.inf
    stream: float = math.inf
    answer: float | None = None
    written: frozenset[str] = frozenset()
    keep_alive: float | None = None
    keep_alive_json: bool = False


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """The settings below `retries.budget`. `None` stands for the built-in value."""

    share: float | None = None
    per_second: float | None = None
    least: float | None = None


@dataclass(frozen=True, slots=True)
class Retries:
    """The settings below `retries`: how failed attempts are repeated."""

    attempts: int
    safety: Literal["safe", "strict", "off"]
    same_deployment: int = 0
    budget: RetryBudget = RetryBudget()


ONE_ATTEMPT = Retries(1, "safe")
"""The retries of a target without a configuration."""


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """The settings below `circuit_breaker`. `None` stands for the built-in value."""

    failures: int | None = None
    cooldown: float | None = None
    longest_cooldown: float | None = None


# Content that clients may send to a deployment beyond the built-in defaults -------------------------------------------

DEFAULT_SCHEMES: Final = frozenset({"https", "data"})
"""Schemes of media addresses that are allowed if the configuration has no setting."""


def _unknown_reach(host: str) -> str:
    return "unknown"


@dataclass(frozen=True, slots=True)
class Media:
    """The allowed addresses of images, sounds, videos and files. A setting that is `None` is decided by the next level.

    `schemes` are lower-case URL schemes. `allow_private` is whether addresses inside the operator's network may be sent
    to an engine.
    """

    schemes: frozenset[str] | None = None
    allow_private: bool | None = None

    def over(self, other: "Media") -> "Media":
        """Return these settings. A setting that is `None` has the value of `other`."""
        return Media(
            other.schemes if self.schemes is None else self.schemes,
            other.allow_private if self.allow_private is None else self.allow_private,
        )


NO_MEDIA: Final = Media()


@dataclass(frozen=True, slots=True)
class Permits:
    """The permissions of one deployment.

    `fields` are names of fields that may be sent to an engine although they name a host, a path, a template or code.
    `headers` are lower-case header names that clients may add; a name that ends in `*` matches all names with that
    prefix. `reach` returns the network of a host name or IP literal (`loopback`, `private`, `public`, `unknown`, or
    `forbidden` if it must never be called). `reach` is passed in because the list of address ranges is part of the
    package `config`.
    """

    fields: frozenset[str] = frozenset()
    headers: tuple[str, ...] = ()
    media: Media = NO_MEDIA
    reach: Callable[[str], str] = _unknown_reach


NO_PERMITS: Final = Permits()


# The deployment -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A deployment that can be called. A field with the name of a setting has its value, which
    `docs/reference/configuration.md` documents.

    `vendor`, `model` and `deployment` are the names in the configuration, `upstream_model` the name that is sent to the
    vendor. `base_url` has every placeholder filled in and no trailing slash. `model_key` is the key of `models` that
    the target comes from (`vendor/*` for a wildcard). If `completions` is `None`, the profile decides. If
    `context_length_exceeded_behavior` is `None`, the surface decides; a team's settings override it and
    `on_unsupported`. `authorities` are trusted for the vendor's certificate (`None`: the system's). `permits` says
    which fields and headers clients may send. `list_price` returns the price of a model by its name, for a target of
    any model whose vendor has list prices.
    """

    vendor: str
    model: str
    deployment: str
    upstream_model: str
    profile: Profile
    dialect: "Dialect"
    base_url: str
    credential: Credential
    timeouts: Timeouts
    weight: int = 1
    context_window: int | None = None
    max_output_tokens: int | None = None
    api_version: str | None = None
    completions: bool | None = None
    allow_private: bool = False
    model_key: str = ""
    on_unsupported: OnUnsupported = "error"
    context_length_exceeded_behavior: ContextBehavior | None = None
    price: Price | None = None
    retries: Retries = ONE_ATTEMPT
    circuit_breaker: CircuitBreaker = CircuitBreaker()
    authorities: Authorities | None = None
    permits: Permits = NO_PERMITS
    stream_upstream: Literal["auto", "off"] = "off"
    concurrent: int | None = None
    input_type: str | None = None
    out_of_service: bool = False
    base_model: str | None = None
    list_price: Callable[[str], Price | None] | None = None
    name: str = field(init=False)
    """`vendor/model/deployment`, the value of the `x-dragoman-deployment` header."""
    label: str = field(init=False)
    """The label in metrics, `model_key/deployment`. No client can add a value to it."""
    identity: tuple[str, str, str] = field(init=False)
    """Identifies the deployment across reloads: label, base URL and, for a wildcard, the model. The overload of one
    model does not mean that the vendor's other models are overloaded."""
    model_names: tuple[str, str] = field(init=False)
    """The names by which facts about the model are looked up, the more specific one first: the base model's if it is
    written, else the vendor's and the operator's."""
    is_engine: bool = field(init=False)
    """Whether the server runs in the operator's own network, and would use hosts, paths or code that a client names."""
    compiled: dict[Hashable, object] = field(init=False, repr=False, default_factory=dict)
    """Objects that the dialect has compiled for this target, for use by any request. There are few keys. They live as
    long as the target, and so as long as the configuration."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.vendor}/{self.model}/{self.deployment}")
        object.__setattr__(self, "label", f"{self.model_key}/{self.deployment}")
        model = self.model if self.model_key.endswith("/*") else ""
        object.__setattr__(self, "identity", (self.label, self.base_url, model))
        names = (self.upstream_model, self.model) if self.base_model is None else (self.base_model, self.base_model)
        object.__setattr__(self, "model_names", names)
        object.__setattr__(self, "is_engine", self.profile.engine or self.allow_private)

    @property
    def model_profile(self) -> Profile:
        """The vendor's profile for the target's model, without the facts about the model itself."""
        return self.profile.for_model(*self.model_names)

    @property
    def version_profile(self) -> Profile:
        """The vendor's profile for the version of the API that the deployment calls, independent of the model."""
        return self.profile.for_version(self.api_version or self.profile.api_version)
