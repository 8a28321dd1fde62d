"""What one deployment is told by the four levels of the table that speak to it, resolved.

Never the shape of a level, and never whether a value makes sense.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeVar

from pydantic import SecretStr

from config.credentials import Credentials
from config.problems import Path
from config.schema import Deployment, DeploymentSettings, GatewayConfig, Model, Price

IMPLICIT_DEPLOYMENT: Final = "default"
"""The deployment of a model that lists none."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class MediaSettings:
    """Which addresses of media may be sent; None where no level says it."""

    schemes: frozenset[str] | None = None
    allow_private: bool | None = None


@dataclass(frozen=True, slots=True)
class TimeoutSeconds:
    """The deadlines of one attempt in seconds; the defaults are the built-in ones. That of `answer` depends on whether
    there is another target: None."""

    connect: float = 5.0
    first_event: float = 60.0
    idle: float = 120.0
    total: float = 600.0
    progress: float = 600.0
    stream: float = 3600.0
    answer: float | None = None


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """What pays for repeats; None where no level says it."""

    share: float | None = None
    per_second: float | None = None
    least: float | None = None


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How often and after what a request is tried again; the defaults are the built-in ones."""

    attempts: int = 3
    safety: Literal["safe", "strict", "off"] = "safe"
    same_deployment: int = 0
    budget: BudgetSettings = BudgetSettings()


@dataclass(frozen=True, slots=True)
class CircuitBreakerSettings:
    """When a deployment is left alone, and for how many seconds; None where no level says it."""

    failures: int | None = None
    cooldown: float | None = None
    longest_cooldown: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything one deployment inherits, resolved.

    `origins` holds where each value was written, by key (`base_url`, `timeouts.connect`, `headers.X-Team`), as a path
    that `Loaded.locate` turns into a position; a built-in value has no entry. `context_behavior` is the
    `context_length_exceeded_behavior` of clients who send none; None leaves it to the surface. At most one of `api_key`
    and `credentials` is there. `ca_file` is as written; what it holds is in `Loaded.authorities`, by its origin.
    """

    profile: str
    upstream_model: str | None
    api_key: SecretStr | None
    credentials: Credentials | None
    base_url: str | None
    allow_private: bool
    ca_file: str | None
    url_params: Mapping[str, str]
    api_version: str | None
    headers: Mapping[str, SecretStr]
    timeouts: TimeoutSeconds
    stream_upstream: Literal["auto", "off"]
    retries: RetrySettings
    circuit_breaker: CircuitBreakerSettings
    context_window: int | None
    max_output_tokens: int | None
    price: Price | None
    completions: bool | None
    on_unsupported: Literal["error", "drop"]
    context_behavior: Literal["truncate", "error"] | None
    allow_fields: tuple[str, ...]
    allow_headers: tuple[str, ...]
    media: MediaSettings
    concurrent: int | None
    weight: int
    origins: Mapping[str, Path]


@dataclass(slots=True)
class Inheritance:
    """The levels one deployment takes its settings from, the deepest first, and where each value came from."""

    levels: list[tuple[Path, DeploymentSettings]]
    origins: dict[str, Path] = field(default_factory=dict)

    def first(self, key: str, read: Callable[[DeploymentSettings], _T | None]) -> _T | None:
        """The value of the deepest level that has one."""
        for path, level in self.levels:
            value = read(level)
            if value is not None:
                self.origins[key] = (*path, *key.split("."))
                return value
        return None

    def merged(self, key: str, read: Callable[[DeploymentSettings], Mapping[str, _T]]) -> Mapping[str, _T]:
        """The entries of all levels; of names that differ only in case the deepest stays."""
        found: dict[str, tuple[str, _T]] = {}
        for path, level in reversed(self.levels):
            for name, value in read(level).items():
                found[name.lower()] = (name, value)
                self.origins[f"{key}.{name}"] = (*path, key, name)
        return MappingProxyType(dict(found.values()))


def vendor_inheritance(config: GatewayConfig, vendor: str) -> Inheritance:
    """What every model of a vendor of the table starts from."""
    return Inheritance([(("vendors", vendor), config.vendors[vendor]), (("defaults",), config.defaults)])


def deployment_named(model: Model, deployment: str) -> Deployment:
    """A model's deployment by name, the implicit one included; raises KeyError for others."""
    if not model.deployments and deployment == IMPLICIT_DEPLOYMENT:
        return Deployment()
    return model.deployments[deployment]


def deployment_inheritance(config: GatewayConfig, vendor: str, model: str, deployment: str) -> Inheritance:
    """What one deployment takes its settings from; names are the table's keys."""
    above, found = vendor_inheritance(config, vendor), config.models[model]
    path: Path = ("models", model)
    own = deployment_named(found, deployment)
    return Inheritance([((*path, "deployments", deployment), own), (path, found), *above.levels])


def effective(config: GatewayConfig, vendor: str, model: str, deployment: str) -> Settings:
    """The settings of one deployment; raises KeyError for names the table does not hold.

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
        timeouts=_timeouts(level),
        stream_upstream=level.first("stream_upstream", lambda s: s.stream_upstream) or "off",
        retries=_retries(level),
        circuit_breaker=_circuit_breaker(level),
        context_window=level.first("context_window", lambda s: s.context_window),
        max_output_tokens=level.first("max_output_tokens", lambda s: s.max_output_tokens),
        price=level.first("price", lambda s: s.price),
        completions=level.first("completions", lambda s: s.completions),
        on_unsupported=level.first("on_unsupported", lambda s: s.on_unsupported) or "error",
        context_behavior=level.first("context_length_exceeded_behavior", lambda s: s.context_length_exceeded_behavior),
        allow_fields=tuple(level.first("allow_fields", lambda s: s.allow_fields) or ()),
        allow_headers=tuple(level.first("allow_headers", lambda s: s.allow_headers) or ()),
        media=_media(level),
        concurrent=level.first("concurrent", lambda s: s.concurrent),
        weight=own.weight,
        origins=MappingProxyType(level.origins),
    )


def _media(level: Inheritance) -> MediaSettings:
    schemes = level.first("media.schemes", lambda s: s.media.schemes)
    allow_private = level.first("media.allow_private", lambda s: s.media.allow_private)
    return MediaSettings(None if schemes is None else frozenset(schemes), allow_private)


def _authentication(level: Inheritance) -> tuple[SecretStr | None, Credentials | None]:
    """The deepest word on it: a key silences the credentials of the levels above, and they its."""
    for path, own in level.levels:
        if own.credentials is not None:
            level.origins["credentials"] = (*path, "credentials")
            return None, own.credentials
        if own.api_key is not None:
            level.origins["api_key"] = (*path, "api_key")
            return own.api_key or None, None
    return None, None


def _timeouts(level: Inheritance) -> TimeoutSeconds:
    built_in = TimeoutSeconds()
    return TimeoutSeconds(
        connect=level.first("timeouts.connect", lambda s: s.timeouts.connect) or built_in.connect,
        first_event=level.first("timeouts.first_event", lambda s: s.timeouts.first_event) or built_in.first_event,
        idle=level.first("timeouts.idle", lambda s: s.timeouts.idle) or built_in.idle,
        total=level.first("timeouts.total", lambda s: s.timeouts.total) or built_in.total,
        progress=level.first("timeouts.progress", lambda s: s.timeouts.progress) or built_in.progress,
        stream=level.first("timeouts.stream", lambda s: s.timeouts.stream) or built_in.stream,
        answer=level.first("timeouts.answer", lambda s: s.timeouts.answer),
    )


def _retries(level: Inheritance) -> RetrySettings:
    built_in = RetrySettings()
    return RetrySettings(
        attempts=level.first("retries.attempts", lambda s: s.retries.attempts) or built_in.attempts,
        safety=level.first("retries.safety", lambda s: s.retries.safety) or built_in.safety,
        same_deployment=level.first("retries.same_deployment", lambda s: s.retries.same_deployment)
        or built_in.same_deployment,
        budget=BudgetSettings(
            share=level.first("retries.budget.share", lambda s: s.retries.budget.share),
            per_second=level.first("retries.budget.per_second", lambda s: s.retries.budget.per_second),
            least=level.first("retries.budget.least", lambda s: s.retries.budget.least),
        ),
    )


def _circuit_breaker(level: Inheritance) -> CircuitBreakerSettings:
    return CircuitBreakerSettings(
        failures=level.first("circuit_breaker.failures", lambda s: s.circuit_breaker.failures),
        cooldown=level.first("circuit_breaker.cooldown", lambda s: s.circuit_breaker.cooldown),
        longest_cooldown=level.first("circuit_breaker.longest_cooldown", lambda s: s.circuit_breaker.longest_cooldown),
    )
