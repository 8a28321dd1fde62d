"""The credentials settings of the operator and of the vendor's row, joined."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from config.table.inheritance import effective_settings
from providers.profiles.load_profiles import parse_profiles
from providers.vendor_credential import AwsSource, EntraSource, ExchangeSource, GoogleSource, OidcSource, Source
from proxy.vendor_credentials.sources import CLOUD_PLATFORM, Deployment, MissingSetting, source_of
from tests.proxy.kit.tables import loaded
from tests.support.looped import looped

ROWS = parse_profiles("""
plain: {base_url: https://api.example/v1}
signed: {base_url: 'https://bedrock-runtime.{region}.amazonaws.com', auth: {fallback: aws, service: bedrock}}
google: {base_url: https://aiplatform.googleapis.com, auth: {fallback: google}}
scoped: {base_url: https://aiplatform.googleapis.com, auth: {fallback: google, scope: own}}
ibm: {base_url: 'https://{region}.ml.cloud.ibm.com', auth: {exchange: https://iam.cloud.ibm.com/identity/token}}
azure: {base_url: 'https://{resource}.openai.azure.com', auth: {style: header, header: api-key, scope: cognitive}}
""")

BEDROCK = "https://bedrock-runtime.eu-central-1.amazonaws.com"


def source(row: str, written: str, base_url: str = "https://api.example/v1") -> Source | MissingSetting | None:
    """Return the source of a deployment with these settings, whose vendor has this row."""
    table = loaded(f"vendors: {{v: {{profile: {row}, {written}}}}}\nmodels: {{v/m: {{}}}}")
    settings = effective_settings(table.config, "v", "v/m", "default")
    return source_of(Deployment(settings, ROWS[row], base_url, Path("/etc/gateway")))


@looped(
    ("row", "written", "base_url", "expected"),
    [
        ("plain", "", "https://api.example/v1", None),
        ("plain", "api_key: k", "https://api.example/v1", None),
        ("signed", "api_key: k", BEDROCK, None),
        ("signed", "", BEDROCK, AwsSource("bedrock", "eu-central-1")),
        ("signed", 'api_key: ""', BEDROCK, AwsSource("bedrock", "eu-central-1")),
        ("signed", "credentials: aws", BEDROCK, AwsSource("bedrock", "eu-central-1")),
        ("google", "", "https://aiplatform.googleapis.com", GoogleSource(CLOUD_PLATFORM)),
        ("scoped", "", "https://aiplatform.googleapis.com", GoogleSource("own")),
        ("azure", "api_key: k", "https://x.openai.azure.com", None),
        ("azure", "", "https://x.openai.azure.com", None),
        ("azure", "credentials: entra", "https://x.openai.azure.com", EntraSource("cognitive")),
        ("azure", "credentials: {entra: {scope: s, client_id: c}}", "https://x.example", EntraSource("s", "c")),
    ],
)
def test_what_is_not_written_is_taken_from_the_row_and_the_address(
    row: str, written: str, base_url: str, expected: Source | None
) -> None:
    assert source(row, written, base_url) == expected


@pytest.mark.parametrize("host", ["us-south.ml.cloud.ibm.com", "private.eu-de.ml.cloud.ibm.com"])
def test_a_key_that_its_vendor_does_not_take_is_exchanged(host: str) -> None:
    url = "https://iam.cloud.ibm.com/identity/token"
    assert source("ibm", "api_key: k", f"https://{host}/projects/p") == ExchangeSource(url, SecretStr("k"))
    assert source("ibm", "", f"https://{host}/projects/p") is None


@looped("host", ["cpd.example", "xcloud.ibm.com", "cloud.ibm.com.example", "cloud.ibm.com"])
def test_the_key_of_another_place_is_not_given_to_be_exchanged(host: str) -> None:
    assert source("ibm", "api_key: k", f"https://{host}/projects/p") is None


@looped(
    ("written", "base_url", "region"),
    [
        ("", BEDROCK, "eu-central-1"),
        ("", "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("", "https://bedrock-runtime.ap-southeast-2.api.aws", "ap-southeast-2"),
        ("", "https://vpce-0a1-b2c3.bedrock-runtime.eu-west-1.vpce.amazonaws.com", "eu-west-1"),
        ("", "https://bedrock-runtime.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("url_params: {region: eu-west-3}", "https://bedrock.proxy.example", "eu-west-3"),
        ("credentials: {aws: {region: us-east-1}}, url_params: {region: x}", BEDROCK, "us-east-1"),
    ],
)
def test_the_region_is_the_address_s_unless_it_is_said(written: str, base_url: str, region: str) -> None:
    found = source("signed", written, base_url)
    assert isinstance(found, AwsSource)
    assert found.region == region


def test_everything_that_is_written_arrives() -> None:
    role = "arn:aws:iam::123456789012:role/x"
    written = f"credentials: {{aws: {{profile: p, role_arn: '{role}', region: r, service: s}}}}"
    assert source("plain", written) == AwsSource("s", "r", "p", role)
    assert source("plain", "credentials: {google: {file: sa.json}}") == GoogleSource(
        CLOUD_PLATFORM, "/etc/gateway/sa.json"
    )
    assert source("plain", "credentials: {google: {file: /run/sa.json}}") == GoogleSource(
        CLOUD_PLATFORM, "/run/sa.json"
    )
    oidc = "token_url: https://id.example/t, client_id: c, client_secret: k, scope: s, audience: a, client_auth: post"
    for private in ("", ", allow_private: true"):
        assert source("plain", f"credentials: {{oidc: {{{oidc}}}}}{private}") == OidcSource(
            "https://id.example/t", "c", SecretStr("k"), "s", "a", "post", bool(private)
        )


@looped(
    ("row", "written", "base_url", "message"),
    [
        (
            "plain",
            "credentials: aws",
            BEDROCK,
            "the profile 'plain' has no default for this setting: set credentials.aws.service",
        ),
        (
            "plain",
            "credentials: entra",
            "https://x.example",
            "the profile 'plain' has no default for this setting: set credentials.entra.scope",
        ),
        (
            "signed",
            "",
            "https://bedrock.proxy.example",
            "the address contains no AWS region: set credentials.aws.region",
        ),
    ],
)
def test_what_nobody_says_is_told(row: str, written: str, base_url: str, message: str) -> None:
    assert source(row, written, base_url) == MissingSetting(message)
