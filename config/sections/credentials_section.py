"""The `credentials` section: the source of credentials that expire."""

from typing import Final

from pydantic import Field, model_validator
from pydantic.json_schema import JsonSchemaValue

from config.sections.section import Section, ShorthandSection
from config.sections.value_types import (
    AwsName,
    BaseUrl,
    ClientAuth,
    RoleArn,
    Secret,
    Text,
    refuse,
)

_WITHOUT_SETTINGS: Final = ("aws", "google", "entra")
"""Kinds that need no settings, since the vendor's own libraries find the credentials."""


class AwsCredentials(Section):
    """Requests are signed (SigV4) with the credentials that AWS's own chain finds: environment, profile, web identity,
    container, instance. Needs the extra `aws`."""

    profile: Text | None = Field(
        default=None, description="A profile of AWS's own files, instead of the profile in the environment."
    )
    role_arn: RoleArn | None = Field(default=None, description="A role to assume with these credentials.")
    region: AwsName | None = Field(
        default=None, description="Built in: url_params.region, or the region in the address."
    )
    service: AwsName | None = Field(
        default=None, description="The service's name in signatures. Built in: the profile's."
    )


class GoogleCredentials(Section):
    """Access tokens of Google's Application Default Credentials. Needs the extra `gcp`."""

    file: Text | None = Field(
        default=None,
        description="A JSON file with the credentials, relative to this file. Built in: the sources that Google's own "
        "tools use, the metadata server last.",
    )


class EntraCredentials(Section):
    """Access tokens of Microsoft Entra ID, by Azure's own chain: environment, workload identity, managed identity,
    command line. Needs the extra `azure`."""

    scope: Text | None = Field(default=None, description="The scope of the token. Built in: the profile's.")
    client_id: Text | None = Field(
        default=None, description="Which managed or workload identity. Built in: AZURE_CLIENT_ID, or the only one."
    )


class OidcCredentials(Section):
    """Access tokens by OAuth 2.0 client credentials (RFC 6749, 4.4), from any identity provider."""

    token_url: BaseUrl = Field(
        description="The provider's token endpoint; in the operator's own network with allow_private."
    )
    client_id: Text = Field(description="The client's name at the provider.")
    client_secret: Secret = Field(description='The client\'s secret, best as "${VAR}" or "${file:PATH}".')
    scope: Text | None = Field(default=None, description="The scopes to request, separated by spaces.")
    audience: Text | None = Field(default=None, description="The audience of the token, if the provider requires one.")
    ca_file: Text | None = Field(
        default=None,
        description="A PEM file with the authorities that may sign token_url's certificate, instead of the system's; "
        "relative to this file.",
    )
    client_auth: ClientAuth = Field(
        default="basic", description="How the client sends its secret: basic in a header, post in the body."
    )


class CredentialsSection(ShorthandSection):
    """One kind of credentials; `aws`, `google` and `entra` may be written as the bare word."""

    aws: AwsCredentials | None = Field(default=None, description="AWS: signed requests.")
    google: GoogleCredentials | None = Field(default=None, description="Google: access tokens.")
    entra: EntraCredentials | None = Field(default=None, description="Microsoft Entra ID: access tokens.")
    oidc: OidcCredentials | None = Field(default=None, description="OAuth 2.0 client credentials: access tokens.")

    @property
    def kind(self) -> AwsCredentials | GoogleCredentials | EntraCredentials | OidcCredentials:
        """The only kind that is configured."""
        return next(own for own in (self.aws, self.google, self.entra, self.oidc) if own is not None)

    @classmethod
    def short_form_schema(cls) -> JsonSchemaValue:
        return {"enum": list(_WITHOUT_SETTINGS)}

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        if isinstance(value, dict):
            return {name: {} if own is None else own for name, own in value.items()}
        if isinstance(value, str) and value not in _WITHOUT_SETTINGS:
            raise refuse(f"must be {', '.join(_WITHOUT_SETTINGS)}, or a mapping of one of these or oidc")
        return {value: {}} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_kind(self) -> "CredentialsSection":
        if len(self.model_fields_set) != 1:
            raise refuse("must name exactly one of aws, google, entra, oidc")
        return self
