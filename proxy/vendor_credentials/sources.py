"""Where a deployment's credentials come from, by the operator's settings and the vendor's profile. Fetches nothing."""

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
"""The region in an address of AWS, the VPC endpoints and dual-stack ones included."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A setting that is missing, and where to put it."""

    message: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment as far as its credentials are concerned. `near` is the folder of the file that configures them,
    `authorities` those of their `ca_file`."""

    settings: Settings
    profile: Profile
    base_url: str
    near: Path
    authorities: Authorities | None = None


def source_of(deployment: Deployment) -> Source | Missing | None:
    """Return the source of a deployment's credentials; None when it has a key to be sent, or neither."""
    settings, auth = deployment.settings, deployment.profile.auth
    written = settings.credentials
    if settings.api_key is not None and auth.exchange is not None and _near(auth.exchange, deployment.base_url):
        return ExchangeSource(auth.exchange, settings.api_key)
    if written is None and settings.api_key is None and auth.fallback is not None:
        written = CredentialsSection.model_validate(auth.fallback)
    if written is None:
        return None
    match written.kind:
        case AwsCredentials() as aws:
            return _aws(aws, deployment)
        case GoogleCredentials(file=file):
            return GoogleSource(auth.scope or CLOUD_PLATFORM, None if file is None else str(deployment.near / file))
        case EntraCredentials() as entra:
            scope = entra.scope or auth.scope
            return EntraSource(scope, entra.client_id) if scope else _missing("entra.scope", deployment)
        case OidcCredentials() as oidc:
            return _oidc(oidc, deployment)


def _near(endpoint: str, base_url: str) -> bool:
    """Return whether an address lies in the domain of the endpoint that exchanges keys: no other may get the key."""
    domain = (urlsplit(endpoint).hostname or "").partition(".")[2]
    return (urlsplit(base_url).hostname or "").endswith(f".{domain}")


def _aws(written: AwsCredentials, deployment: Deployment) -> Source | Missing:
    service = written.service or deployment.profile.auth.service
    found = _REGION.search(urlsplit(deployment.base_url).hostname or "")
    region = written.region or deployment.settings.url_params.get("region") or (found and found[1])
    if service is None:
        return _missing("aws.service", deployment)
    if region is None:
        return Missing("the address names no region of AWS: set credentials.aws.region")
    return AwsSource(service, region, written.profile, written.role_arn)


def _missing(key: str, deployment: Deployment) -> Missing:
    name = deployment.profile.name
    return Missing(f"the profile {name!r} does not say what such credentials are for: set credentials.{key}")


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
