"""Finds missing credentials and libraries of a configuration, without a network.

No message repeats a value of the configuration, which may come from a secret reference.

Sources for the locations that each vendor's own tools search: botocore 1.44.5 `credentials.create_credential_resolver`;
google-auth 2.62.2 `_default.default`; azure-identity 1.27.0 `DefaultAzureCredential`.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from config.load_config import Loaded
from config.problem import Path as Place
from config.problem import Problem
from config.table.inheritance import effective_settings
from providers.target import Target
from providers.vendor_credential import AwsSource, EntraSource, ExchangeSource, GoogleSource, OidcSource, Source
from proxy.optional_libraries import OTEL, REDIS, extra_hint, missing_extra
from proxy.routing.snapshot import Snapshot

Env = Mapping[str, str]


class Machine:
    """The environment and files besides the configuration. Values that many sources share are looked up once, because a
    large configuration has a source for each role, profile or identity."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self._missing: dict[str, str | None] = {}

    def missing(self, kind: str) -> str | None:
        """Return the install hint for this kind of credentials; `None` if the needed packages are installed."""
        if kind not in self._missing:
            self._missing[kind] = missing_extra(kind)
        return self._missing[kind]

    @cached_property
    def home(self) -> Path:
        """The user's home directory."""
        return Path(self.env.get("HOME") or "/")

    @cached_property
    def aws_files(self) -> tuple[Path, Path]:
        """The paths of the files with AWS profiles."""
        own = self.home / ".aws"
        return (
            Path(self.env.get("AWS_SHARED_CREDENTIALS_FILE") or own / "credentials"),
            Path(self.env.get("AWS_CONFIG_FILE") or own / "config"),
        )

    @cached_property
    def aws_profiles(self) -> Mapping[str, frozenset[str]]:
        """The AWS profiles by name, each with the names of the keys that it has in any of the files."""
        found: dict[str, frozenset[str]] = {}
        for file in self.aws_files:
            for name, keys in _profiles(file):
                found[name] = found.get(name, frozenset()) | keys
        return found

    @cached_property
    def has_azure_command(self) -> bool:
        """Whether one of the commands that Azure's chain runs is installed."""
        return any(shutil.which(command, path=self.env.get("PATH", "")) for command in _ENTRA_COMMANDS)


@dataclass(frozen=True, slots=True)
class MissingItem:
    """A missing item, in a sentence. `certain` is false if the machine's own metadata service, which is not called
    here, may still have it."""

    message: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class MissingItems:
    """The missing items at their paths: problems if something cannot work, warnings if it may not work."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def missing_credentials(loaded: Loaded, snapshot: Snapshot, env: Env) -> MissingItems:
    """Return everything that is missing, once for each source."""
    machine = Machine(env)
    found: dict[Source, tuple[Problem, MissingItem] | None] = {}
    for target in snapshot.targets():
        source = target.credential.source
        if source is None or source in found:
            continue
        missing_item = missing_of(source, machine)
        found[source] = None if missing_item is None else (_problem(loaded, target, missing_item), missing_item)
    found_missing = [each for each in found.values() if each is not None]
    return MissingItems(
        tuple(
            sorted(
                {
                    *_shared(loaded),
                    *_tracing(loaded),
                    *(problem for problem, missing_item in found_missing if missing_item.certain),
                }
            )
        ),
        tuple(sorted({problem for problem, missing_item in found_missing if not missing_item.certain})),
    )


def _shared(loaded: Loaded) -> Iterator[Problem]:
    place: Place = ("server", "shared")
    if loaded.config.server.shared is not None and (missing_item := extra_hint(REDIS, "shared state needs")):
        yield Problem.at(loaded.locate(place), place, missing_item)


def _tracing(loaded: Loaded) -> Iterator[Problem]:
    place: Place = ("server", "tracing")
    if loaded.config.server.tracing is not None and (missing_item := extra_hint(OTEL, "tracing needs")):
        yield Problem.at(loaded.locate(place), place, missing_item)


def _problem(loaded: Loaded, target: Target, missing_item: MissingItem) -> Problem:
    settings = effective_settings(loaded.config, target.vendor, target.model_key, target.deployment)
    place: Place = settings.origins.get("credentials", ("vendors", target.vendor))
    return Problem.at(loaded.locate(place), place, missing_item.message)


def missing_of(source: Source, machine: Machine) -> MissingItem | None:
    """Return the missing items of one source; `None` if credentials are present, whether they are valid or not."""
    if (extra := machine.missing(source.kind)) is not None:
        return MissingItem(extra)
    match source:
        case AwsSource():
            return _aws(source, machine)
        case GoogleSource():
            return _google(source, machine)
        case EntraSource():
            return _entra(machine)
        case OidcSource() | ExchangeSource():
            return None


_METADATA_SERVICE: Final = "only the machine's own metadata service is left, which is queried at the first call"


# AWS ----------------------------------------------------------------------------------------------------------------

_AWS_SECRETS: Final = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")
_AWS_CONTAINER: Final = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
_AWS_KEYS: Final = frozenset(
    {"aws_access_key_id", "credential_process", "login_session", "role_arn", "sso_session", "sso_start_url"}
    | {"web_identity_token_file"}
)
"""Keys of a profile that can provide credentials."""


def _aws(source: AwsSource, machine: Machine) -> MissingItem | None:
    env = machine.env
    keys = machine.aws_profiles.get(source.profile or env.get("AWS_PROFILE") or "default")
    shown = " and ".join(map(str, machine.aws_files))
    if source.profile is not None and keys is None:
        return MissingItem(f"there is no profile of that name in {shown}")
    variables = _AWS_CONTAINER if source.profile else (*_AWS_SECRETS, *_AWS_CONTAINER)
    if any(env.get(name) for name in variables) or (keys is not None and keys & _AWS_KEYS):
        return None
    places = f"in the environment ({', '.join(variables)}) and in the profile's section of {shown}"
    return MissingItem(f"no credentials of AWS {places}; {_METADATA_SERVICE}", certain=False)


def _profiles(file: Path) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the profiles in a file and the names of their keys; nothing if the file cannot be read."""
    import configparser  # imported here, because most configurations do not need this module, and loading it takes 2 ms

    parser = configparser.RawConfigParser(strict=False, default_section="")
    try:
        parser.read_string(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return
    for section in parser.sections():
        yield section.removeprefix("profile ").strip(" \"'"), frozenset(parser[section])


# Google -------------------------------------------------------------------------------------------------------------

_GOOGLE_VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"


def _google(source: GoogleSource, machine: Machine) -> MissingItem | None:
    env = machine.env
    if source.file is not None:
        return _google_file(Path(source.file), "the file")
    if env.get(_GOOGLE_VARIABLE):
        return _google_file(Path(env[_GOOGLE_VARIABLE]), f"the file of {_GOOGLE_VARIABLE}")
    folder = Path(env.get("CLOUDSDK_CONFIG") or machine.home / ".config" / "gcloud")
    own = folder / "application_default_credentials.json"
    if own.exists():
        return _google_file(own, str(own))
    return MissingItem(
        f"no credentials of Google: {_GOOGLE_VARIABLE} is not set and there is no {own}; {_METADATA_SERVICE}",
        certain=False,
    )


def _google_file(file: Path, called: str) -> MissingItem | None:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        return MissingItem(
            f"cannot read {called} with the credentials of Google: {error.strerror or type(error).__name__}"
        )
    except ValueError:
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        return MissingItem(f"{called} holds no credentials of Google, which are a JSON object with a type")
    return None


# Azure --------------------------------------------------------------------------------------------------------------

_ENTRA_VARIABLES: Final = ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE")
_ENTRA_MACHINE: Final = ("IDENTITY_ENDPOINT", "MSI_ENDPOINT")
_ENTRA_COMMANDS: Final = ("az", "azd", "pwsh")


def _entra(machine: Machine) -> MissingItem | None:
    variables = (*_ENTRA_VARIABLES, *_ENTRA_MACHINE)
    if any(machine.env.get(name) for name in variables) or machine.has_azure_command:
        return None
    places = f"in the environment ({', '.join(variables)}), and none of the commands {', '.join(_ENTRA_COMMANDS)}"
    return MissingItem(f"no credentials of Azure {places}; {_METADATA_SERVICE}", certain=False)
