"""The `credentials` section: its forms, its errors, and the values that are never printed."""

from pydantic import SecretStr

from config.sections.credentials_section import CredentialsSection
from config.table.inheritance import effective_settings
from config.table.table_schema import VendorSection
from tests.config.tables import complaints, load, warnings
from tests.support.looped import looped

OIDC = "{oidc: {token_url: 'https://id.example/token', client_id: gw, client_secret: '${SECRET}'%s}}"
ENV = {"SECRET": "canary"}


def vendor(written: str, more: str = "") -> str:
    return f"version: 1\nvendors:\n  v: {{credentials: {written}{more}}}\nmodels: {{v/m: {{}}}}\n"


def credentials(written: str) -> CredentialsSection:
    found = load(vendor(written), ENV).config.vendors["v"].credentials
    assert found is not None
    return found


@looped("kind", ["aws", "google", "entra"])
def test_a_kind_that_needs_nothing_may_be_a_bare_word(kind: str) -> None:
    assert credentials(kind) == credentials(f"{{{kind}: {{}}}}") == credentials(f"{{{kind}: }}")
    assert credentials(kind).model_fields_set == {kind}


def test_each_kind_has_its_own_keys() -> None:
    role = "arn:aws:iam::123456789012:role/gw"
    aws = credentials(f"{{aws: {{profile: prod, role_arn: '{role}', region: eu-central-1, service: bedrock}}}}").aws
    assert aws is not None
    assert (aws.profile, aws.role_arn, aws.region, aws.service) == ("prod", role, "eu-central-1", "bedrock")
    google = credentials("{google: {file: sa.json}}").google
    assert google is not None
    assert google.file == "sa.json"
    entra = credentials("{entra: {scope: api://x/.default, client_id: me}}").entra
    assert entra is not None
    assert (entra.scope, entra.client_id) == ("api://x/.default", "me")
    oidc = credentials(OIDC % ", scope: a b, audience: api, client_auth: post").oidc
    assert oidc is not None
    assert (oidc.token_url, oidc.client_id, oidc.client_secret) == (
        "https://id.example/token",
        "gw",
        SecretStr("canary"),
    )
    assert (oidc.scope, oidc.audience, oidc.client_auth) == ("a b", "api", "post")


def test_the_secret_is_never_shown() -> None:
    table = load(vendor(OIDC % ""), ENV)
    for shown in (repr(table), repr(table.config), table.config.model_dump_json(), str(credentials(OIDC % ""))):
        assert "canary" not in shown


KINDS = "must be aws, google, entra, or a mapping of one of these or oidc"


@looped(
    ("written", "expected"),
    [
        ("azure", [f"3:20 vendors.v.credentials: {KINDS}"]),
        ("oidc", [f"3:20 vendors.v.credentials: {KINDS}"]),
        ("{}", ["3:20 vendors.v.credentials: must name exactly one of aws, google, entra, oidc"]),
        ("{aws: {}, google: {}}", ["3:20 vendors.v.credentials: must name exactly one of aws, google, entra, oidc"]),
        ("{awz: {}}", ["3:21 vendors.v.credentials.awz: unknown key; did you mean aws?"]),
        ("[aws]", ["3:20 vendors.v.credentials: expected a name or a mapping, found a list"]),
        (
            "{oidc: }",
            [
                "3:21 vendors.v.credentials.oidc.client_id: required key is missing",
                "3:21 vendors.v.credentials.oidc.client_secret: required key is missing",
                "3:21 vendors.v.credentials.oidc.token_url: required key is missing",
            ],
        ),
        (
            "{aws: {role_arn: admin, region: EU}}",
            [
                "3:37 vendors.v.credentials.aws.role_arn: must be a role, such as "
                "arn:aws:iam::123456789012:role/gateway",
                "3:52 vendors.v.credentials.aws.region: must be lower-case letters, digits and '-'",
            ],
        ),
        (OIDC.replace("${SECRET}", "") % "", ["3:97 vendors.v.credentials.oidc.client_secret: must not be empty"]),
        (OIDC % ", client_auth: header", ["3:123 vendors.v.credentials.oidc.client_auth: must be basic or post"]),
        (
            OIDC.replace("https", "http") % "",
            [
                "3:39 vendors.v.credentials.oidc.token_url: https required; for a server in your own network add "
                "`allow_private: true` beside it"
            ],
        ),
        (
            OIDC.replace("id.example", "id.example:0") % "",
            ["3:39 vendors.v.credentials.oidc.token_url: has an empty or zero port"],
        ),
    ],
)
def test_a_mistake_is_reported_at_its_place(written: str, expected: list[str]) -> None:
    assert complaints(vendor(written), ENV) == expected


def test_a_token_endpoint_in_the_own_network_needs_the_operator_s_consent() -> None:
    written = OIDC.replace("https://id.example", "http://10.0.0.1") % ""
    assert complaints(vendor(written), ENV) == [
        "3:39 vendors.v.credentials.oidc.token_url: is a private address; to allow it, add `allow_private: true` "
        "beside it"
    ]
    assert complaints(vendor(written, ", allow_private: true"), ENV) == []


def test_a_key_and_credentials_at_one_place_exclude_each_other() -> None:
    table = vendor("aws", ", api_key: '${SECRET}'")
    assert complaints(table, ENV) == [
        "3:7 vendors.v.credentials: cannot be used with api_key, which is also written here: keep one of them"
    ]


LEVELS = """\
    version: 1
    defaults: {credentials: aws}
    vendors:
      v: {api_key: "${SECRET}"}
      w: {credentials: google}
      x: {}
    models:
      v/m: {deployments: {own: {credentials: entra}, silent: {}}}
      w/m: {deployments: {own: {api_key: "${SECRET}"}, none: {api_key: ""}, silent: {}}}
      x/m: {}
    """


@looped(
    ("model", "deployment", "key", "kind", "origin"),
    [
        ("v/m", "own", None, "entra", ("models", "v/m", "deployments", "own", "credentials")),
        ("v/m", "silent", "canary", None, ("vendors", "v", "api_key")),
        ("w/m", "own", "canary", None, ("models", "w/m", "deployments", "own", "api_key")),
        ("w/m", "none", None, None, ("models", "w/m", "deployments", "none", "api_key")),
        ("w/m", "silent", None, "google", ("vendors", "w", "credentials")),
        ("x/m", "default", None, "aws", ("defaults", "credentials")),
    ],
)
def test_the_deepest_level_counts_whether_key_or_credentials(
    model: str, deployment: str, key: str | None, kind: str | None, origin: tuple[str, ...]
) -> None:
    found = effective_settings(load(LEVELS, ENV).config, model[0], model, deployment)
    assert found.api_key == (None if key is None else SecretStr(key))
    assert (None if found.credentials is None else found.credentials.model_fields_set) == (kind and {kind})
    assert origin in found.origins.values()
    assert ("api_key" in found.origins) != ("credentials" in found.origins)


def test_a_secret_that_is_written_out_is_warned_of() -> None:
    written = OIDC.replace("${SECRET}", "plain") % ""
    assert warnings(vendor(written)) == [
        "3:97 vendors.v.credentials.oidc.client_secret: the secret is written in the config file itself; "
        'write "${VAR}" or "${file:PATH}"'
    ]
    assert warnings(vendor(OIDC % ""), ENV) == []


def test_credentials_that_many_vendors_would_be_sent_are_warned_of() -> None:
    table = "version: 1\ndefaults: {credentials: google}\nvendors: {v: {}, w: {}, x: {api_key: '${SECRET}'}}\n"
    assert warnings(table + "models: {v/m: {}}\n", ENV) == [
        "2:25 defaults.credentials: these credentials are sent to 2 vendors: v, w"
    ]


def test_by_default_there_are_none() -> None:
    assert VendorSection().credentials is None
