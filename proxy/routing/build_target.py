"""Builds the target of a deployment from its settings and its vendor's profile."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from inspect import signature
from pathlib import Path as FilePath
from typing import Final, TypeVar
from urllib.parse import urlsplit

from config.addresses import address_fault, reach
from config.load_config import Loaded
from config.problem import Path, Problem, did_you_mean, shown
from config.sections.section import Section
from config.table.inheritance import Settings
from providers.client_extras.extra_headers import covers_own
from providers.client_extras.hosts_paths_and_code import is_reserved
from providers.dialects.registry import DIALECTS
from providers.list_prices.list_prices import NO_LIST_PRICES, ListPrices
from providers.profile import Profile
from providers.profiles.load_profiles import load_profiles
from providers.target import CircuitBreaker, Media, Permits, Retries, RetryBudget, Target, Timeouts
from providers.vendor_credential import Authorities, Credential
from proxy.routing.compile_prices import compile_pricing
from proxy.vendor_credentials.sources import Deployment, MissingSetting, source_of

_T = TypeVar("_T")

GENERIC: Final = "openai_compatible"
"""The profile for any server with OpenAI's API."""


def make_target(
    key: str, deployment: str, settings: Settings, loaded: Loaded, prices: ListPrices = NO_LIST_PRICES
) -> Target | tuple[Problem, ...]:
    """Return the target of one deployment of the entry `key` (`vendor/model` or `vendor/*`), or its problems."""
    vendor, _, model = key.partition("/")
    report = _Report(loaded, vendor, settings)
    profile = load_profiles().get(settings.profile)
    if profile is None:
        return (unknown_profile(vendor, settings.profile, loaded),)
    base_url = _base_url(profile, settings, report)
    credential = _credential(profile, settings, base_url, report)
    permits = _permits(settings, report)
    if report.problems:
        return tuple(report.problems)
    pricing = compile_pricing(settings, profile, base_url, model, prices)
    timeouts, written = settings.timeouts, frozenset(settings.timeouts.model_fields_set)
    keep_alive = None if timeouts.keep_alive == "off" else timeouts.keep_alive
    budget = with_settings(partial(RetryBudget), settings.retries.budget)
    target = partial(
        Target,
        vendor=vendor,
        model=model,
        deployment=deployment,
        upstream_model=settings.upstream_model or model,
        profile=profile,
        dialect=DIALECTS[profile.dialect],
        base_url=base_url,
        credential=credential,
        timeouts=with_settings(partial(Timeouts, written=written, keep_alive=keep_alive), timeouts),
        retries=with_settings(partial(Retries, budget=budget), settings.retries),
        circuit_breaker=with_settings(partial(CircuitBreaker), settings.circuit_breaker),
        context_window=settings.context_window or pricing.window,
        model_key=key,
        authorities=report.authorities("ca_file"),
        permits=permits,
        price=pricing.price,
        base_model=pricing.base_model,
        list_price=pricing.list_price,
    )
    return with_settings(target, settings)


def with_settings(part: partial[_T], settings: Section) -> _T:
    """Make a target, or a part of a target. A field that is not given has the value of the setting with the same
    name."""
    shared = _shared(part.func, type(settings))
    return part(**{name: getattr(settings, name) for name in shared if name not in part.keywords})


@cache
def _shared(kind: Callable[..., object], section: type[Section]) -> tuple[str, ...]:
    """Return the names that a dataclass's fields and a section's settings have in common."""
    return tuple(name for name in signature(kind).parameters if name in section.model_fields)


def _permits(settings: Settings, report: "_Report") -> Permits:
    headers, names, schemes = settings.allow_headers or (), settings.allow_fields or (), settings.media.schemes
    for index, name in enumerate(headers):
        if covers_own(name.lower()):
            report.entry("allow_headers", index, "no client may send this: it is the gateway's or a credential")
    for index, name in enumerate(names):
        if is_reserved(name):
            report.entry("allow_fields", index, "no client may send this: it is the gateway's to decide")
    return Permits(
        frozenset(names),
        tuple(name.lower() for name in headers),
        with_settings(partial(Media, schemes=None if schemes is None else frozenset(schemes)), settings.media),
        reach,
    )


def unknown_profile(vendor: str, name: str, loaded: Loaded) -> Problem:
    """Return the problem of a vendor whose profile does not exist, located at its profile setting or at its entry."""
    path: Path = ("vendors", vendor, "profile")
    if path in loaded.referenced:
        return Problem.at(loaded.locate(path), path, "the value of this reference is no profile")
    near = did_you_mean(name, load_profiles())
    any_other = f"{' For' if near else '; for'} a server that speaks OpenAI's API write profile: {GENERIC}"
    return Problem.at(loaded.locate(path), path, f"no profile is called {shown(name)!r}{near}{any_other}")


@dataclass(slots=True, eq=False)
class _Report:
    """A collector of the problems of one deployment, each located at the setting to change."""

    _loaded: Loaded
    vendor: str
    _settings: Settings
    problems: list[Problem] = field(default_factory=list)

    def add(self, key: str, fallback: Path, message: str) -> None:
        """Report a problem at the key's origin, or at `fallback` if the key is not set."""
        self.problems.append(self.problem(key, fallback, message))

    def entry(self, key: str, index: int, message: str) -> None:
        """Report a problem of one entry of a list."""
        path: Path = (*self._settings.origins[key], index)
        self.problems.append(Problem.at(self._loaded.locate(path), path, message))

    def authorities(self, key: str, *below: str) -> Authorities | None:
        """Return the certificates of the file that is set at the key's origin, or below it; `None` if there is no
        file."""
        found = self._loaded.authorities.get((*self._settings.origins.get(key, ()), *below))
        return None if found is None else Authorities(found.digest, found.pem)

    def problem(self, key: str, fallback: Path, message: str) -> Problem:
        """Return a problem at the key's origin, or at `fallback` if the key is not set."""
        path = self._settings.origins.get(key, fallback)
        return Problem.at(self._loaded.locate(path), path, message)


def _credential(profile: Profile, settings: Settings, base_url: str, report: _Report) -> Credential:
    here: Path = ("vendors", report.vendor)
    near = FilePath(report.problem("credentials", here, "").file).parent
    authorities = report.authorities("credentials", "oidc", "ca_file")
    source = source_of(Deployment(settings, profile, base_url, near, authorities))
    if isinstance(source, MissingSetting):
        if base_url:  # If the address is empty, a problem of the address has already been reported.
            report.add("credentials", here, source.message)
    elif source is not None:
        return Credential(static=settings.headers, source=source)
    elif profile.key_required and settings.api_key is None:
        report.add("api_key", here, f"the profile {profile.name!r} needs an api_key")
    return Credential(profile.auth.style, profile.auth.header, settings.api_key, settings.headers)


def _base_url(profile: Profile, settings: Settings, report: _Report) -> str:
    """Return the address with its placeholders filled in and without a trailing slash. It is empty after a problem."""
    here: Path = ("vendors", report.vendor)
    template = settings.base_url or profile.base_url
    if template is None:
        report.add("base_url", here, f"the profile {profile.name!r} has no address of its own: set base_url")
        return ""
    if settings.base_url is None:
        missing = [name for name in profile.placeholders if name not in settings.url_params]
        if missing:
            names = ", ".join(f"url_params.{name}" for name in missing)
            report.add("url_params", here, f"the address of profile {profile.name!r} needs {names} (or set base_url)")
            return ""
        for name in profile.placeholders:
            template = template.replace("{" + name + "}", settings.url_params[name])
    url = template.rstrip("/")
    if urlsplit(url).scheme in ("http", "https") and (
        fault := address_fault(url, allow_private=bool(settings.allow_private))
    ):
        report.add("base_url", here, fault)
    return url
