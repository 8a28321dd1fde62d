"""One deployment's settings and its vendor's row, made into a target.

Never decides which deployment serves a request.
"""

from pathlib import Path as FilePath
from typing import Final
from urllib.parse import urlsplit

from config.addresses import address_fault, reach
from config.loader import Loaded
from config.problems import Path, Problem, did_you_mean, shown
from config.settings import Settings
from providers.auth import Authorities, Credential
from providers.dialect import CircuitBreaker, Retries, RetryBudget, Target, Timeouts
from providers.extra_headers import covers_own
from providers.locators import reserved
from providers.permits import Media, Permits
from providers.price import Price
from providers.profiles import Profile, load_profiles
from providers.registry import DIALECTS
from proxy.credentials.sources import Deployment, Missing, source_of

GENERIC: Final = "openai_compatible"
"""The profile of any server that speaks OpenAI's API."""


def make_target(row: str, deployment: str, settings: Settings, loaded: Loaded) -> Target | tuple[Problem, ...]:
    """The target of one deployment of the row `vendor/model` (or `vendor/*`), or what is wrong with it."""
    vendor, _, model = row.partition("/")
    report = _Report(loaded, vendor, row, settings)
    profile = load_profiles().get(settings.profile)
    if profile is None:
        return (unknown_profile(vendor, settings.profile, loaded),)
    base_url = _base_url(profile, settings, report)
    credential = _credential(profile, settings, base_url, report)
    permits = _permits(settings, report)
    if report.problems:
        return tuple(report.problems)
    timeouts, price = settings.timeouts, settings.price
    return Target(
        vendor=vendor,
        model=model,
        deployment=deployment,
        upstream_model=settings.upstream_model or model,
        profile=profile,
        dialect=DIALECTS[profile.dialect],
        base_url=base_url,
        credential=credential,
        timeouts=Timeouts(
            *(timeouts.connect, timeouts.first_event, timeouts.idle, timeouts.total),
            *(timeouts.progress, timeouts.stream, timeouts.answer),
            written=_written("timeouts.", settings),
        ),
        stream_upstream=settings.stream_upstream,
        retries=_retries(settings),
        circuit_breaker=_circuit_breaker(settings),
        weight=settings.weight,
        context_window=settings.context_window,
        max_output_tokens=settings.max_output_tokens,
        api_version=settings.api_version,
        completions=settings.completions,
        allow_private=settings.allow_private,
        row=row,
        on_unsupported=settings.on_unsupported,
        context_behavior=settings.context_behavior,
        authorities=report.authorities("ca_file"),
        permits=permits,
        concurrent=settings.concurrent,
        price=None if price is None else Price(price.input, price.output, price.cached_input),
    )


def _retries(settings: Settings) -> Retries:
    retries, budget = settings.retries, settings.retries.budget
    own = RetryBudget(budget.share, budget.per_second, budget.least)
    return Retries(retries.attempts, retries.safety, retries.same_deployment, own)


def _circuit_breaker(settings: Settings) -> CircuitBreaker:
    own = settings.circuit_breaker
    return CircuitBreaker(own.failures, own.cooldown, own.longest_cooldown)


def _written(prefix: str, settings: Settings) -> frozenset[str]:
    """The settings below a key that some level of the table says."""
    return frozenset(key.removeprefix(prefix) for key in settings.origins if key.startswith(prefix))


def _permits(settings: Settings, report: "_Report") -> Permits:
    """What clients may send; names that no table can allow are reported where they stand."""
    for index, name in enumerate(settings.allow_headers):
        if covers_own(name.lower()):
            report.entry("allow_headers", index, "no client may send this: it is the gateway's or a credential")
    for index, name in enumerate(settings.allow_fields):
        if reserved(name):
            report.entry("allow_fields", index, "no client may send this: it is the gateway's to decide")
    return Permits(
        frozenset(settings.allow_fields),
        tuple(name.lower() for name in settings.allow_headers),
        Media(settings.media.schemes, settings.media.allow_private),
        reach,
    )


def unknown_profile(vendor: str, name: str, loaded: Loaded) -> Problem:
    """The problem of a vendor whose profile does not exist, at the profile where it was written."""
    path: Path = ("vendors", vendor, "profile")
    if path in loaded.referenced:
        return Problem.at(loaded.locate(path), path, "the value of this reference is no profile")
    near = did_you_mean(name, load_profiles())
    any_other = f"{' For' if near else '; for'} a server that speaks OpenAI's API write profile: {GENERIC}"
    return Problem.at(loaded.locate(path), path, f"no profile is called {shown(name)!r}{near}{any_other}")


class _Report:
    """Problems of one deployment, each at the place the operator would change."""

    def __init__(self, loaded: Loaded, vendor: str, row: str, settings: Settings) -> None:
        self._loaded = loaded
        self._settings = settings
        self.vendor = vendor
        self.row = row
        self.problems: list[Problem] = []

    def add(self, key: str, fallback: Path, message: str) -> None:
        """Report at the key's origin, or at `fallback` when it was not written."""
        self.problems.append(self.problem(key, fallback, message))

    def entry(self, key: str, index: int, message: str) -> None:
        """Report one entry of a list, where it was written."""
        path: Path = (*self._settings.origins[key], index)
        self.problems.append(Problem.at(self._loaded.locate(path), path, message))

    def authorities(self, key: str, *below: str) -> Authorities | None:
        """The certificates of a file that is named at the key's origin, or below it; None when none is."""
        found = self._loaded.authorities.get((*self._settings.origins.get(key, ()), *below))
        return None if found is None else Authorities(found.digest, found.pem)

    def problem(self, key: str, fallback: Path, message: str) -> Problem:
        """One problem."""
        path = self._settings.origins.get(key, fallback)
        return Problem.at(self._loaded.locate(path), path, message)


def _credential(profile: Profile, settings: Settings, base_url: str, report: _Report) -> Credential:
    """How the deployment authenticates; nothing when that failed."""
    here: Path = ("vendors", report.vendor)
    near = FilePath(report.problem("credentials", here, "").file).parent
    authorities = report.authorities("credentials", "oidc", "ca_file")
    source = source_of(Deployment(settings, profile, base_url, near, authorities))
    if isinstance(source, Missing):
        if base_url:  # or it has been told what is missing
            report.add("credentials", here, source.message)
    elif source is not None:
        return Credential(static=settings.headers, source=source)
    elif profile.key_required and settings.api_key is None:
        report.add("api_key", here, f"the profile {profile.name!r} needs an api_key")
    return Credential(profile.auth.style, profile.auth.header, settings.api_key, settings.headers)


def _base_url(profile: Profile, settings: Settings, report: _Report) -> str:
    """The address with every placeholder filled in and no trailing slash; empty when that failed."""
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
        fault := address_fault(url, allow_private=settings.allow_private)
    ):
        report.add("base_url", here, fault)
    return url
