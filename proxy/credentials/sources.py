"""What the operator says of credentials and what the vendor's row says of them, made into where they come from.

Never fetches, and never looks whether anything is there.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from config.credentials import AwsCredentials, Credentials, EntraCredentials, GoogleCredentials, OidcCredentials
from config.settings import Settings
from providers.auth import Authorities, AwsSource, EntraSource, ExchangeSource, GoogleSource, OidcSource, Source
from providers.profiles import Profile

CLOUD_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"
"""The scope that Vertex AI's own SDK asks for (google-genai 3.4.0)."""

_REGION: Final = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-[0-9])\.(?:vpce\.)?(?:amazonaws\.com|api\.aws)\b")
"""The region in an address of AWS, the VPC endpoints and dual-stack ones included."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What nobody says, and where it would be said."""

    message: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment as far as its credentials are concerned. `near` is the folder of the file that speaks of them,
    `authorities` those of their `ca_file`."""

    settings: Settings
    profile: Profile
    base_url: str
    near: Path
    authorities: Authorities | None = None


def source_of(deployment: Deployment) -> Source | Missing | None:
    """Where the credentials of a deployment come from; None when it has a key to be sent, or neither."""
    settings, auth = deployment.settings, deployment.profile.auth
    written = settings.credentials
    if settings.api_key is not None and auth.exchange is not None and _near(auth.exchange, deployment.base_url):
        return ExchangeSource(auth.exchange, settings.api_key)
    if written is None and settings.api_key is None and auth.fallback is not None:
        written = Credentials.model_validate(auth.fallback)
    if written is None:
        return None
    match written.kind:
        case AwsCredentials() as aws:
            return _aws(aws, deployment)
        case GoogleCredentials(file=file):
            told = auth.scope or CLOUD_PLATFORM
            return GoogleSource(told, None if file is None else str(deployment.near / file))
        case EntraCredentials() as entra:
            scope = entra.scope or auth.scope
            return EntraSource(scope, entra.client_id) if scope else _unsaid("entra.scope", deployment)
        case OidcCredentials() as oidc:
            return _oidc(oidc, deployment)


def _near(exchange: str, base_url: str) -> bool:
    """Whether an address lies in the domain of the endpoint that exchanges keys: another's key must not go there."""
    domain = (urlsplit(exchange).hostname or "").partition(".")[2]
    return (urlsplit(base_url).hostname or "").endswith(f".{domain}")


def _aws(written: AwsCredentials, deployment: Deployment) -> Source | Missing:
    service = written.service or deployment.profile.auth.service
    found = _REGION.search(urlsplit(deployment.base_url).hostname or "")
    region = written.region or deployment.settings.url_params.get("region") or (found and found[1])
    if service is None:
        return _unsaid("aws.service", deployment)
    if region is None:
        return Missing("the address names no region of AWS: set credentials.aws.region")
    return AwsSource(service, region, written.profile, written.role_arn)


def _unsaid(key: str, deployment: Deployment) -> Missing:
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
        deployment.settings.allow_private,
        deployment.authorities,
    )
