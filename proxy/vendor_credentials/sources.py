"""Finds the source of a deployment's credentials from the operator's settings and the vendor's profile. This module
fetches no credentials."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from config.sections.credentials_section import (
    AwsCredentials,
    CredentialsSection,
    EntraCredentials,
    GoogleCredentials,
    OidcCredentials,
)
from config.table.inheritance import Settings
from providers.profile import Profile
from providers.vendor_credential import (
    Authorities,
    AwsSource,
    EntraSource,
    ExchangeSource,
    GoogleSource,
    OidcSource,
    Source,
)

CLOUD_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"
"""The scope that Vertex AI's own SDK uses (google-genai 3.4.0)."""

_REGION: Final = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-[0-9])\.(?:vpce\.)?(?:amazonaws\.com|api\.aws)\b")
"""The region in an AWS address. VPC endpoints and dual-stack addresses match too."""


@dataclass(frozen=True, slots=True)
class MissingSetting:
    """A missing setting. `message` names the key of the configuration to set."""

    message: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """The part of a deployment that decides its credentials. `folder` is the folder of the file that configures them.
    `authorities` are the certificate authorities of their `ca_file`."""

    settings: Settings
    profile: Profile
    base_url: str
    folder: Path
    authorities: Authorities | None = None


def source_of(deployment: Deployment) -> Source | MissingSetting | None:
    """Return the source of a deployment's credentials. Return `None` if the deployment has a static key or no
    credentials."""
    settings, auth = deployment.settings, deployment.profile.auth
    written = settings.credentials
    if settings.api_key is not None and auth.exchange is not None and _in_domain_of(auth.exchange, deployment.base_url):
        return ExchangeSource(auth.exchange, settings.api_key)
    if written is None and settings.api_key is None and auth.fallback is not None:
        written = CredentialsSection.model_validate(auth.fallback)
    if written is None:
        return None
    match written.kind:
        case AwsCredentials() as aws:
            return _aws(aws, deployment)
        case GoogleCredentials(file=file):
            return GoogleSource(auth.scope or CLOUD_PLATFORM, None if file is None else str(deployment.folder / file))
        case EntraCredentials() as entra:
            scope = entra.scope or auth.scope
            return EntraSource(scope, entra.client_id) if scope else _missing("entra.scope", deployment)
        case OidcCredentials() as oidc:
            return _oidc(oidc, deployment)


def _in_domain_of(endpoint: str, base_url: str) -> bool:
    """Return whether an address is in the same domain as the endpoint that exchanges keys. No endpoint in another
    domain may get the key."""
    domain = (urlsplit(endpoint).hostname or "").partition(".")[2]
    return (urlsplit(base_url).hostname or "").endswith(f".{domain}")


def _aws(written: AwsCredentials, deployment: Deployment) -> Source | MissingSetting:
    service = written.service or deployment.profile.auth.service
    found = _REGION.search(urlsplit(deployment.base_url).hostname or "")
    region = written.region or deployment.settings.url_params.get("region") or (found and found[1])
    if service is None:
        return _missing("aws.service", deployment)
    if region is None:
        return MissingSetting("the address contains no AWS region: set credentials.aws.region")
    return AwsSource(service, region, written.profile, written.role_arn)


def _missing(key: str, deployment: Deployment) -> MissingSetting:
    name = deployment.profile.name
    return MissingSetting(f"the profile {name!r} has no default for this setting: set credentials.{key}")


def _oidc(written: OidcCredentials, deployment: Deployment) -> OidcSource:
    return OidcSource(
        written.token_url,
        written.client_id,
        written.client_secret,
        written.scope,
        written.audience,
        written.client_auth,
        bool(deployment.settings.allow_private),
        deployment.authorities,
    )
