"""The credentials that a configuration lacks, found without a network."""

import json
import socket
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import SecretStr

from providers.vendor_credential import AwsSource, EntraSource, GoogleSource, OidcSource, Source
from proxy.process.table_checks.check_credentials import Machine, MissingItem, missing_credentials, missing_of
from proxy.routing.snapshot import build_snapshot
from tests.proxy.kit.tables import loaded

pytestmark = pytest.mark.smoke


AWS = AwsSource("bedrock", "eu-central-1")
PROFILE = AwsSource("bedrock", "eu-central-1", "canary-profile")
GOOGLE = GoogleSource("scope")
ENTRA = EntraSource("scope")
OIDC = OidcSource("https://id.example/t", "c", SecretStr("canary"))
LEFT = "only the machine's own metadata service is left, which is queried at the first call"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test on any use of the network."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def missing_credential(source: Source, home: Path, more: Mapping[str, str] | None = None) -> MissingItem | None:
    """Return the missing credential on a machine with this home directory, whose environment holds nothing else."""
    found = missing_of(source, Machine({"HOME": str(home), **(more or {})}))
    assert found is None or "canary" not in found.message
    return found


def put(home: Path, name: str, text: str) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# AWS ----------------------------------------------------------------------------------------------------------------


def test_where_aws_was_looked_for(tmp_path: Path) -> None:
    assert missing_credential(AWS, tmp_path) == MissingItem(
        "no credentials of AWS in the environment (AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE, "
        "AWS_CONTAINER_CREDENTIALS_FULL_URI, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI) and in the profile's section of "
        f"{tmp_path}/.aws/credentials and {tmp_path}/.aws/config; {LEFT}",
        certain=False,
    )


@pytest.mark.parametrize(
    "variable",
    [
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    ],
)
def test_a_variable_of_aws_is_enough(tmp_path: Path, variable: str) -> None:
    assert missing_credential(AWS, tmp_path, {variable: "x"}) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("credentials", "[default]\naws_access_key_id = AKIA\n"),
        ("config", "[default]\nrole_arn = x\nsource_profile = y\n"),
        ("config", "[default]\nsso_session = x\n"),
        ("config", "[default]\ncredential_process = x\ns3 =\n  max_concurrent_requests = 1\n"),
    ],
)
def test_a_profile_with_means_of_its_own_is_enough(tmp_path: Path, name: str, text: str) -> None:
    put(tmp_path, f".aws/{name}", text)
    assert missing_credential(AWS, tmp_path) is None


def test_both_files_of_aws_speak_of_a_profile(tmp_path: Path) -> None:
    put(tmp_path, ".aws/credentials", "[default]\naws_access_key_id = AKIA\n")
    put(tmp_path, ".aws/config", "[default]\nregion = eu-central-1\n")
    assert missing_credential(AWS, tmp_path) is None


@pytest.mark.parametrize(
    "text", ["[default]\nregion = x\n", "[other]\naws_access_key_id = x\n", "not a file of AWS", ""]
)
def test_a_file_without_means_is_not(tmp_path: Path, text: str) -> None:
    put(tmp_path, ".aws/config", text)
    found = missing_credential(AWS, tmp_path)
    assert found is not None
    assert not found.certain


def test_the_environment_says_which_files_and_which_profile(tmp_path: Path) -> None:
    config = put(tmp_path, "elsewhere", "[profile 'own one']\ncredential_process = x\n")
    assert missing_credential(AWS, tmp_path, {"AWS_CONFIG_FILE": str(config), "AWS_PROFILE": "own one"}) is None
    assert (
        missing_credential(AWS, tmp_path, {"AWS_SHARED_CREDENTIALS_FILE": str(config), "AWS_PROFILE": "other"})
        is not None
    )


def test_a_profile_that_the_table_names_must_be_there(tmp_path: Path) -> None:
    missing = MissingItem(f"there is no profile of that name in {tmp_path}/.aws/credentials and {tmp_path}/.aws/config")
    assert (
        missing_credential(PROFILE, tmp_path)
        == missing_credential(PROFILE, tmp_path, {"AWS_ACCESS_KEY_ID": "x"})
        == missing
    )
    put(tmp_path, ".aws/config", "[profile canary-profile]\nregion = x\n")
    found = missing_credential(PROFILE, tmp_path, {"AWS_ACCESS_KEY_ID": "x"})
    assert found is not None
    assert not found.certain
    put(tmp_path, ".aws/credentials", "[canary-profile]\naws_access_key_id = x\n")
    assert missing_credential(PROFILE, tmp_path) is None


# Google -------------------------------------------------------------------------------------------------------------

ACCOUNT = json.dumps({"type": "service_account"})


def test_where_google_was_looked_for(tmp_path: Path) -> None:
    assert missing_credential(GOOGLE, tmp_path) == MissingItem(
        "no credentials of Google: GOOGLE_APPLICATION_CREDENTIALS is not set and there is no "
        f"{tmp_path}/.config/gcloud/application_default_credentials.json; {LEFT}",
        certain=False,
    )


def test_each_place_of_google_is_enough(tmp_path: Path) -> None:
    file = put(tmp_path, "sa.json", ACCOUNT)
    assert missing_credential(GoogleSource("scope", str(file)), tmp_path) is None
    assert missing_credential(GOOGLE, tmp_path, {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}) is None
    put(tmp_path, "cloud/application_default_credentials.json", ACCOUNT)
    assert missing_credential(GOOGLE, tmp_path, {"CLOUDSDK_CONFIG": f"{tmp_path}/cloud"}) is None
    put(tmp_path, ".config/gcloud/application_default_credentials.json", ACCOUNT)
    assert missing_credential(GOOGLE, tmp_path) is None


def test_a_file_that_cannot_be_read_is_told_without_its_name(tmp_path: Path) -> None:
    gone = str(tmp_path / "canary")
    reason = "with the credentials of Google: No such file or directory"
    assert missing_credential(GoogleSource("scope", gone), tmp_path) == MissingItem(f"cannot read the file {reason}")
    assert missing_credential(GOOGLE, tmp_path, {"GOOGLE_APPLICATION_CREDENTIALS": gone}) == MissingItem(
        f"cannot read the file of GOOGLE_APPLICATION_CREDENTIALS {reason}"
    )


@pytest.mark.parametrize("text", ["canary", "[]", "{}", '{"type": 1}', '"canary"'])
def test_a_file_with_something_else_is_told_without_what_it_holds(tmp_path: Path, text: str) -> None:
    file = put(tmp_path, "sa.json", text)
    message = "holds no credentials of Google, which are a JSON object with a type"
    assert missing_credential(GoogleSource("scope", str(file)), tmp_path) == MissingItem(f"the file {message}")


# Azure --------------------------------------------------------------------------------------------------------------


def test_where_azure_was_looked_for(tmp_path: Path) -> None:
    assert missing_credential(ENTRA, tmp_path) == MissingItem(
        "no credentials of Azure in the environment (AZURE_CLIENT_SECRET, AZURE_CLIENT_CERTIFICATE_PATH, "
        "AZURE_FEDERATED_TOKEN_FILE, IDENTITY_ENDPOINT, MSI_ENDPOINT), and none of the commands az, azd, pwsh; " + LEFT,
        certain=False,
    )


@pytest.mark.parametrize("variable", ["AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "IDENTITY_ENDPOINT"])
def test_a_variable_of_azure_is_enough(tmp_path: Path, variable: str) -> None:
    assert missing_credential(ENTRA, tmp_path, {variable: "x"}) is None


def test_a_command_of_azure_is_enough(tmp_path: Path) -> None:
    command = put(tmp_path, "bin/az", "#!/bin/sh\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    assert missing_credential(ENTRA, tmp_path, {"PATH": str(command.parent)}) is None


# All ----------------------------------------------------------------------------------------------------------------


def test_client_credentials_are_all_in_the_table(tmp_path: Path) -> None:
    assert missing_credential(OIDC, tmp_path) is None


@pytest.mark.parametrize(
    ("source", "module", "extra"),
    [(AWS, "botocore", "aws"), (GOOGLE, "google.auth", "gcp"), (ENTRA, "azure.identity", "azure")],
)
def test_a_missing_library_comes_first(
    source: Source, module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert missing_credential(source, tmp_path) == MissingItem(
        f"credentials of the kind {source.kind} need an extra: "
        f"make extras, or pip install '.[{extra}]' in Dragoman's source"
    )


TABLE = """
defaults: {credentials: {google: {file: "${FILE}"}}}
vendors:
  a: {profile: openai_compatible, base_url: "https://a.example", credentials: {entra: {scope: s}}}
  g: {profile: openai_compatible, base_url: "https://g.example"}
models:
  a/m: {deployments: {one: {}, two: {}, own: {credentials: {aws: {service: bedrock, region: eu-central-1}}}}}
  a/*: {}
  g/m: {}
"""


def test_each_source_is_told_of_once_where_it_is_written(tmp_path: Path) -> None:
    table = loaded(TABLE.replace("${FILE}", str(tmp_path / "canary")))
    found = missing_credentials(table, build_snapshot(table), {"HOME": str(tmp_path)})
    assert [str(problem) for problem in found.problems] == [
        "table.yaml:3:25 defaults.credentials: cannot read the file with the credentials of Google: "
        "No such file or directory"
    ]
    assert [str(warning).partition(": no ")[0] for warning in found.warnings] == [
        "table.yaml:5:79 vendors.a.credentials",
        "table.yaml:8:60 models.a/m.deployments.own.credentials",
    ]


def test_many_sources_look_at_the_machine_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    read = Path.read_text

    def watched(file: Path, encoding: str) -> str:
        looked.append(file.name)
        return read(file, encoding)

    def missing(kind: str) -> None:
        looked.append(kind)

    monkeypatch.setattr(Path, "read_text", watched)
    monkeypatch.setattr("proxy.process.table_checks.check_credentials.missing_extra", missing)
    put(tmp_path, ".aws/config", "[profile p1]\nrole_arn = x\n")
    machine = Machine({"HOME": str(tmp_path)})
    sources = [AwsSource("bedrock", "eu-central-1", f"p{number}") for number in range(3)]
    assert [missing_of(source, machine) is None for source in sources] == [False, True, False]
    assert looked == ["aws", "credentials", "config"]


def test_a_table_of_keys_lacks_nothing(tmp_path: Path) -> None:
    table = loaded("vendors: {openai: {api_key: k}}\nmodels: {openai/m: {}}")
    found = missing_credentials(table, build_snapshot(table), {})
    assert (found.problems, found.warnings) == ((), ())


def test_what_processes_share_needs_a_library_too(monkeypatch: pytest.MonkeyPatch) -> None:
    table = loaded('server: {shared: {redis: "redis://:canary@h"}}\nmodels: {mock/echo: {}}\nvendors: {mock: {}}')
    assert missing_credentials(table, build_snapshot(table), {}).problems == ()
    monkeypatch.setitem(sys.modules, "redis", None)
    (problem,) = missing_credentials(table, build_snapshot(table), {}).problems
    assert str(problem) == (
        "table.yaml:2:18 server.shared: shared state needs an extra: "
        "make extras, or pip install '.[redis]' in Dragoman's source"
    )


def test_tracing_without_its_library_is_found_before_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    table = loaded('server: {tracing: {endpoint: "http://c:4318"}}\nmodels: {mock/echo: {}}\nvendors: {mock: {}}')
    assert missing_credentials(table, build_snapshot(table), {}).problems == ()
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    (problem,) = missing_credentials(table, build_snapshot(table), {}).problems
    assert str(problem).endswith(
        "server.tracing: tracing needs an extra: make extras, or pip install '.[otel]' in Dragoman's source"
    )
