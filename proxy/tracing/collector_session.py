"""How exports reach the collector: by the table's address alone, and without reading more of an answer than its head.

The environment's proxies and its `.netrc`, which would replace the table's headers, do not count.
"""

from typing import Any, Final

import requests

MOST_ANSWER: Final = 4096
"""Bytes of an answer that are read so that its connection can be kept; a longer one ends it."""


class CollectorSession(requests.Session):
    """A session whose answers have no body: nobody reads it, and it may be of any length."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False

    def request(self, *args: Any, **options: Any) -> requests.Response:  # noqa: ANN401 - as of the class
        """Send a request, and return its answer without its body."""
        response = super().request(*args, **{**options, "stream": True, "allow_redirects": False})
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length) <= MOST_ANSWER:
            response.raw.read(int(length), decode_content=False)
        response.close()
        return response
