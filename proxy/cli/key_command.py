"""`dragoman key new`: print a new key for a team and its entry for the config file. The command stores neither of
them."""

import hashlib
import json
import re
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from config.reading.yaml_scalars import plain_kind
from config.sections.value_types import DURATION_PATTERN, AllowedName, KeyName, TeamName, to_moment, to_seconds
from proxy.cli.terminal import USAGE

PREFIX: Final = "drg_"
"""The prefix by which secret scanners and people recognise a key."""

RANDOM_BYTES: Final = 32

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*")
"""Text that every YAML reader reads as text without quotes, unless it is a YAML keyword."""


@dataclass(frozen=True, slots=True)
class KeyOptions:
    """The settings of a new key besides its digest, as texts of the command line."""

    team: str | None = None
    name: str | None = None
    expires: str | None = None
    models: str | None = None


class _WrongOption(Exception):
    """An option's value would be invalid in a config file."""


def new_key() -> str:
    """Return a key with 256 random bits. Its characters need no escaping in headers and shells."""
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def digest_line(key: str) -> str:
    """Return the digest of a key in the form of the config file."""
    return f"sha256:{hashlib.sha256(key.encode('ascii')).hexdigest()}"


def key_new(options: KeyOptions, now: datetime) -> int:
    """Print a new key and its entry for the config file, one per line, and their explanation to standard error.
    Without options the entry is the bare digest, otherwise an element of a YAML list."""
    try:
        settings = _settings(options, now)
        team = "<team>" if options.team is None else _checked(TeamName, options.team, "--team")
    except _WrongOption as error:
        print(f"dragoman key new: {error}", file=sys.stderr)
        return USAGE
    key = new_key()
    digest = digest_line(key)
    print(f"The key, shown only once, and its entry for `teams.{team}.keys` in the config file:", file=sys.stderr)
    print(key)
    print(digest if options == KeyOptions() else _entry(digest, settings))
    return 0


def _settings(options: KeyOptions, now: datetime) -> list[str]:
    """Return the entry's settings besides the digest, as YAML."""
    found = []
    if options.name is not None:
        found.append(f"name: {_scalar(_checked(KeyName, options.name, '--name'))}")
    if options.expires is not None:
        found.append(f"expires: {_expires(options.expires, now)}")
    if options.models is not None:
        names = [_scalar(_checked(AllowedName, name, "--models")) for name in options.models.split(",")]
        found.append(f"models: [{', '.join(names)}]")
    return found


def _entry(digest: str, settings: Sequence[str]) -> str:
    if not settings:
        return f'- "{digest}"'
    return f'- {{hash: "{digest}", {", ".join(settings)}}}'


def _expires(text: str, now: datetime) -> str:
    """Return the expiry in the form of the config file. A date or time is unchanged; a duration is added to `now`."""
    try:
        if re.fullmatch(DURATION_PATTERN, text):
            moment = now + timedelta(seconds=float(str(to_seconds(text))))
            text = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ends = to_moment(text)
    except (ValueError, OverflowError):
        message = "must be a duration such as 90d, a date such as 2027-03-01, or a time with its zone"
        raise _WrongOption(f"--expires: {message}") from None
    if ends <= now:
        raise _WrongOption("--expires: lies in the past")
    return text


def _checked(kind: Any, text: str, option: str) -> str:  # noqa: ANN401 -- an annotated type is not a type
    try:
        return str(TypeAdapter(kind).validate_python(text))
    except ValidationError as error:
        raise _WrongOption(f"{option}: {error.errors()[0]['msg']}") from None


def _scalar(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and plain_kind(text) == "text" else json.dumps(text)
