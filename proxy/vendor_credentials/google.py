"""Access tokens from Google's Application Default Credentials. The project of a call is in its URL.

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

DEFAULT_LIFETIME: Final = 900.0
"""The assumed lifetime in seconds of a token whose expiry is unknown."""


class GoogleFetch:
    """Fetches tokens for a source by blocking calls. The credentials object is reused as long as it works, because
    reading a service account's key holds the interpreter lock for 30 ms."""

    def __init__(self, source: GoogleSource) -> None:
        self._source = source
        self._found: Credentials | None = None

    def __call__(self) -> Fetched:
        """Return a fresh token. Raises Unobtainable."""
        if missing := missing_extra(self._source.kind):
            raise Unobtainable(missing)
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        silence("google.auth", "google.oauth2", "urllib3")
        found, self._found = self._found, None
        try:
            found = found or _load_credentials(self._source)
            found.refresh(partial(Request(), timeout=5))  # type: ignore[no-untyped-call]  # the library lacks types
        except (GoogleAuthError, *LIBRARY_ERRORS) as error:
            raise Unobtainable(type(error).__name__) from None
        if not found.token:
            raise Unobtainable("the library returned no token")
        self._found = found
        return Fetched(Bearer(SecretStr(found.token), _quota(found)), _lifetime(found))


def _load_credentials(source: GoogleSource) -> "Credentials":
    from google.auth import default, load_credentials_from_file

    found: Credentials
    if source.file is None:
        found, _ = default(scopes=[source.scope])
    else:
        # The library deprecates this function for files from untrusted sources, but this file belongs to the operator.
        found, _ = load_credentials_from_file(source.file, scopes=[source.scope])  # type: ignore[no-untyped-call]
    return found


def _quota(found: "Credentials") -> dict[str, SecretStr]:
    """Return the header that names the project whose quota a call counts against, if it is not the project in the
    call's URL."""
    project = getattr(found, "quota_project_id", None)
    return {"x-goog-user-project": SecretStr(project)} if project else {}


def _lifetime(found: "Credentials") -> float:
    """Return the remaining lifetime in seconds. The library returns the expiry in UTC without a time zone."""
    return (found.expiry.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds() if found.expiry else DEFAULT_LIFETIME
