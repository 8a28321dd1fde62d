"""Resolve the settings of a deployment: its own, then its model's, its vendor's and the `defaults`, key by key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar, cast

from pydantic import SecretStr

from config import defaults
from config.problem import Path
from config.sections.credentials_section import CredentialsSection
from config.sections.price_section import PriceSection
from config.table.table_schema import (
    DeploymentSection,
    DeploymentSettings,
    GatewayConfig,
    ModelSection,
)

IMPLICIT_DEPLOYMENT: Final = "default"
"""The name of the only deployment of a model that lists none."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class MediaSettings:
    """The media URLs that may be sent; None: the default."""

    schemes: frozenset[str] | None = None
    allow_private: bool | None = None


@dataclass(frozen=True, slots=True)
class TimeoutSettings:
    """The deadlines of an attempt, and the longest silence towards clients (s). `answer` None: the default, while
    another target may be called."""

    connect: float = defaults.CONNECT_TIMEOUT
    first_event: float = defaults.FIRST_EVENT_TIMEOUT
    idle: float = defaults.IDLE_TIMEOUT
    total: float = defaults.TOTAL_TIMEOUT
    progress: float = defaults.PROGRESS_TIMEOUT
    stream: float = defaults.STREAM_TIMEOUT
    answer: float | None = None
    keep_alive: float | Literal["off"] = defaults.KEEP_ALIVE
    keep_alive_json: bool = False


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """The budget that pays for retries; None: the default."""

    share: float | None = None
    per_second: float | None = None
    least: float | None = None


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How often a request is retried, and after which failures."""

    attempts: int = defaults.ATTEMPTS
    safety: Literal["safe", "strict", "off"] = defaults.RETRY_SAFETY
    same_deployment: int = defaults.SAME_DEPLOYMENT_RETRIES
    budget: BudgetSettings = BudgetSettings()


@dataclass(frozen=True, slots=True)
class CircuitBreakerSettings:
    """When a deployment's circuit opens, and for how many seconds; None: the default."""

    failures: int | None = None
    cooldown: float | None = None
    longest_cooldown: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The resolved settings of one deployment.

    `origins` maps a key (`base_url`, `timeouts.connect`, `headers.X-Team`) to the path where its value is written,
    which `Loaded.locate` turns into a position; a default has no entry. `context_behavior` is the
    `context_length_exceeded_behavior` for clients who send none; None leaves it to the surface. At most one of
    `api_key` and `credentials` is set. `ca_file` is as written; `Loaded.authorities` holds its content, by its origin.
    """

    profile: str
    upstream_model: str | None
    api_key: SecretStr | None
    credentials: CredentialsSection | None
    base_url: str | None
    allow_private: bool
    ca_file: str | None
    url_params: Mapping[str, str]
    api_version: str | None
    headers: Mapping[str, SecretStr]
    timeouts: TimeoutSettings
    stream_upstream: Literal["auto", "off"]
    retries: RetrySettings
    circuit_breaker: CircuitBreakerSettings
    context_window: int | None
    max_output_tokens: int | None
    price: PriceSection | Literal["auto", "none"] | None
    base_model: str | None
    completions: bool | None
    on_unsupported: Literal["error", "drop"]
    context_behavior: Literal["truncate", "error"] | None
    allow_fields: tuple[str, ...]
    allow_headers: tuple[str, ...]
    media: MediaSettings
    concurrent: int | None
    input_type: str | None
    out_of_service: bool
    weight: int
    origins: Mapping[str, Path]


@dataclass(slots=True)
class Inheritance:
    """The levels a deployment inherits from, the deepest first, and the origin of each value read so far."""

    levels: list[tuple[Path, DeploymentSettings]]
    origins: dict[str, Path] = field(default_factory=dict)

    def first(self, key: str, read: Callable[[DeploymentSettings], _T | None]) -> _T | None:
        """Return the value of the deepest level that has one, and record its origin."""
        for path, level in self.levels:
            value = read(level)
            if value is not None:
                self.origins[key] = (*path, *key.split("."))
                return value
        return None

    def section(self, key: str, made: type[_T], **inner: object) -> _T:
        """Return the settings below a key such as `retries.budget`, each that of the deepest level that has one; of the
        others the default, or the value in `inner`."""
        names = [each.name for each in fields(cast(Any, made)) if each.name not in inner]
        found = {name: self.first(f"{key}.{name}", attrgetter(f"{key}.{name}")) for name in names}
        return made(**inner, **{name: value for name, value in found.items() if value is not None})

    def merged(self, key: str, read: Callable[[DeploymentSettings], Mapping[str, _T]]) -> Mapping[str, _T]:
        """Return the entries of all levels; of names that differ only in case the deepest level's."""
        found: dict[str, tuple[str, _T]] = {}
        for path, level in reversed(self.levels):
            for name, value in read(level).items():
                found[name.lower()] = (name, value)
                self.origins[f"{key}.{name}"] = (*path, key, name)
        return MappingProxyType(dict(found.values()))


def vendor_inheritance(config: GatewayConfig, vendor: str) -> Inheritance:
    """Return the levels above the models of a vendor."""
    return Inheritance([(("vendors", vendor), config.vendors[vendor]), (("defaults",), config.defaults)])


def model_inheritance(config: GatewayConfig, name: str) -> Inheritance:
    """Return the levels of an entry of `models`, for settings that its deployments have in common."""
    above = vendor_inheritance(config, name.partition("/")[0])
    return Inheritance([(("models", name), config.models[name]), *above.levels])


def deployment_named(model: ModelSection, deployment: str) -> DeploymentSection:
    """Return a model's deployment by name, the implicit one included; raises KeyError for others."""
    if not model.deployments and deployment == IMPLICIT_DEPLOYMENT:
        return DeploymentSection()
    return model.deployments[deployment]


def deployment_inheritance(config: GatewayConfig, vendor: str, model: str, deployment: str) -> Inheritance:
    """Return the levels of one deployment; names are the table's keys."""
    own, path = deployment_named(config.models[model], deployment), ("models", model, "deployments", deployment)
    above = [(("models", model), config.models[model]), *vendor_inheritance(config, vendor).levels]
    return Inheritance([(path, own), *above])


def effective(config: GatewayConfig, vendor: str, model: str, deployment: str) -> Settings:
    """Resolve the settings of one deployment; raises KeyError for names that the table does not hold.

    `model` is the table's key, `vendor/model` or `vendor/*`; `deployment` may be the implicit one.
    """
    found = config.models[model]
    own = deployment_named(found, deployment)
    level = deployment_inheritance(config, vendor, model, deployment)
    api_key, credentials = _authentication(level)
    return Settings(
        profile=config.vendors[vendor].profile or vendor,
        upstream_model=own.upstream_model or found.upstream_model,
        api_key=api_key,
        credentials=credentials,
        base_url=level.first("base_url", lambda s: s.base_url),
        allow_private=level.first("allow_private", lambda s: s.allow_private) or False,
        ca_file=level.first("ca_file", lambda s: s.ca_file) or None,
        url_params=level.merged("url_params", lambda s: s.url_params),
        api_version=level.first("api_version", lambda s: s.api_version),
        headers=level.merged("headers", lambda s: s.headers),
        timeouts=level.section("timeouts", TimeoutSettings),
        stream_upstream=level.first("stream_upstream", lambda s: s.stream_upstream) or defaults.STREAM_UPSTREAM,
        retries=level.section("retries", RetrySettings, budget=level.section("retries.budget", BudgetSettings)),
        circuit_breaker=level.section("circuit_breaker", CircuitBreakerSettings),
        context_window=level.first("context_window", lambda s: s.context_window),
        max_output_tokens=level.first("max_output_tokens", lambda s: s.max_output_tokens),
        price=level.first("price", lambda s: s.price),
        base_model=own.base_model or found.base_model,
        completions=level.first("completions", lambda s: s.completions),
        on_unsupported=level.first("on_unsupported", lambda s: s.on_unsupported) or defaults.ON_UNSUPPORTED,
        context_behavior=level.first("context_length_exceeded_behavior", lambda s: s.context_length_exceeded_behavior),
        allow_fields=tuple(level.first("allow_fields", lambda s: s.allow_fields) or ()),
        allow_headers=tuple(level.first("allow_headers", lambda s: s.allow_headers) or ()),
        media=_media(level),
        concurrent=level.first("concurrent", lambda s: s.concurrent),
        input_type=level.first("input_type", lambda s: s.input_type),
        out_of_service=level.first("out_of_service", lambda s: s.out_of_service) or False,
        weight=own.weight,
        origins=MappingProxyType(level.origins),
    )


def _media(level: Inheritance) -> MediaSettings:
    schemes = level.first("media.schemes", lambda s: s.media.schemes)
    allow_private = level.first("media.allow_private", lambda s: s.media.allow_private)
    return MediaSettings(None if schemes is None else frozenset(schemes), allow_private)


def _authentication(level: Inheritance) -> tuple[SecretStr | None, CredentialsSection | None]:
    """Return the key or the credentials of the deepest level that has either."""
    for path, own in level.levels:
        if own.credentials is not None:
            level.origins["credentials"] = (*path, "credentials")
            return None, own.credentials
        if own.api_key is not None:
            level.origins["api_key"] = (*path, "api_key")
            return own.api_key or None, None
    return None, None
