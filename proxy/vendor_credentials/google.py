"""Access tokens by Google's Application Default Credentials. The project of a call is in its URL.

Source: google-auth 2.62.2; "How Application Default Credentials works".
"""

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from providers.vendor_credential import GoogleSource
from proxy.optional_libraries import LIBRARY_ERRORS, missing_extra, silence
from proxy.vendor_credentials.token_cache import Bearer, Fetched, Unobtainable

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

LASTING: Final = 900.0
"""Seconds that a token is taken to live when its expiry is not known."""


class GoogleFetch:
    """Fetches tokens for a source, by blocking calls. Keeps the credentials as long as they work: reading a service
    account's key takes 30 ms of the interpreter's lock."""

    def __init__(self, source: GoogleSource) -> None:
        self._source = source
        self._found: Credentials | None = None

    def __call__(self) -> Fetched:
        """Return a fresh token. Raises Unobtainable."""
        if lack := missing_extra(self._source.kind):
            raise Unobtainable(lack)
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        silence("google.auth", "google.oauth2", "urllib3")
        found, self._found = self._found, None
        try:
            found = found or _found(self._source)
            found.refresh(partial(Request(), timeout=5))  # type: ignore[no-untyped-call]  # the library's own gap
        except (GoogleAuthError, *LIBRARY_ERRORS) as error:
            raise Unobtainable(type(error).__name__) from None
        if not found.token:
            raise Unobtainable("no token was given")
        self._found = found
        return Fetched(Bearer(SecretStr(found.token), _quota(found)), _lives(found))


def _found(source: GoogleSource) -> "Credentials":
    from google.auth import default, load_credentials_from_file

    found: Credentials
    if source.file is None:
        found, _ = default(scopes=[source.scope])
    else:
        # Deprecated for files from strangers; this one is the operator's.
        found, _ = load_credentials_from_file(source.file, scopes=[source.scope])  # type: ignore[no-untyped-call]
    return found


def _quota(found: "Credentials") -> dict[str, SecretStr]:
    """Return the header for the project whose quota a call counts against, where that is not the one in its URL."""
    project = getattr(found, "quota_project_id", None)
    return {"x-goog-user-project": SecretStr(project)} if project else {}


def _lives(found: "Credentials") -> float:
    """Return the seconds left; the library gives the expiry in UTC, without a time zone."""
    return (found.expiry.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds() if found.expiry else LASTING
