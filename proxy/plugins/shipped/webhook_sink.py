"""A usage sink that posts batches of rows as signed JSON.

Options: `url`; `secret`, which signs a batch, or a list of several secrets while receivers switch to a new one;
`allow_private: true`, which permits an address in a private network, and plain http to it.

The body is `{"version": 1, "rows": […]}`. The header `x-dragoman-signature` is `t=SECONDS,v1=HEX`. HEX is the
HMAC-SHA256 of `SECONDS.BODY` under the secret. With several secrets there is one `v1` for each, as in Stripe's webhooks
(docs.stripe.com/webhooks, November 2026). A batch is sent again unless the response is a 2xx, so a row may arrive
twice. Both copies of the row have the same `id`.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final
from urllib.parse import urlsplit

from proxy.plugins.api import OptionError, Poster, UsageRow

MAX_SECRETS: Final = 4
_KEYS: Final = ("url", "secret", "allow_private")


class WebhookSink:
    """A sink that posts signed batches to a URL."""

    api_version = 1

    def __init__(self, options: Mapping[str, Any]) -> None:
        for key in options:
            if key not in _KEYS:
                raise OptionError(f"unknown option; there are {', '.join(_KEYS)}", key)
        private, url, secret = options.get("allow_private", False), options.get("url"), options.get("secret")
        if not isinstance(private, bool):
            raise OptionError("must be true or false", "allow_private")
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or not parts.hostname or parts.scheme not in ("https", "http"):
            raise OptionError("must be an address that begins with https://", "url")
        if parts.scheme == "http" and not private:
            raise OptionError("plain http is allowed in private networks only: write allow_private: true", "url")
        secrets = secret if isinstance(secret, list) else [secret]
        if not 1 <= len(secrets) <= MAX_SECRETS:
            raise OptionError(f"must be one secret, or a list of at most {MAX_SECRETS}", "secret")
        for at, each in enumerate(secrets):
            if not isinstance(each, str) or len(each) < 16:
                path = ("secret", at) if isinstance(secret, list) else ("secret",)
                raise OptionError('must be at least 16 characters, best as "${VAR}"', *path)
        self._private = private
        self._url = parts.geturl()
        self._secrets = [str(each).encode() for each in secrets]

    async def deliver(self, rows: Sequence[UsageRow], http: Poster) -> None:
        body = json.dumps({"version": 1, "rows": [asdict(row) for row in rows]}).encode()
        seconds = str(int(time.time()))
        signed = seconds.encode() + b"." + body
        signatures = [hmac.new(secret, signed, hashlib.sha256).hexdigest() for secret in self._secrets]
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "dragoman",
            "x-dragoman-signature": ",".join([f"t={seconds}", *(f"v1={each}" for each in signatures)]),
        }
        post = http.post_inside if self._private else http.post
        status = await post(self._url, body, headers)
        if not 200 <= status < 300:
            raise OSError(f"the webhook returned {status}")
