"""How exports reach a collector: OTLP over HTTP, one connection, from the exporter's thread.

The table's address alone counts: no proxies of the environment, no redirects, which would carry the table's headers to
another host. Repeated is what OTLP 1.x says may be (429, 502, 503, 504, and what got no answer), within the time of one
export. Of an answer only the head is used.
"""

import ssl
import threading
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from proxy.version import USER_AGENT

MOST_ANSWER: Final = 4096
"""Bytes of an answer that are read so that its connection can be kept; a longer one ends it."""

PAUSE: Final = 1.0
"""Seconds before an export is repeated, doubled each time, unless the collector says how long."""

REPEATED: Final = frozenset({429, 502, 503, 504})

UNREACHED: Final = "the collector cannot be reached"
TOO_SLOW: Final = "the collector is too slow"


class CollectorLink:
    """The connection to the collector at `endpoint`. An export may take `timeout` seconds, repeats included."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], timeout: float) -> None:
        url = urlsplit(endpoint)
        self._secure = url.scheme == "https"
        self._host = url.hostname or ""
        self._port = url.port
        self._path = url.path.rstrip("/")
        self._headers = {"User-Agent": USER_AGENT, **headers, "Content-Type": "application/x-protobuf"}
        self._timeout = timeout
        self._connection: HTTPConnection | None = None
        self._hurried = threading.Event()

    def hurry(self) -> None:
        """Repeat nothing from now on: the end has come. May be called in any thread."""
        self._hurried.set()

    def post(self, path: str, body: bytes) -> str | None:
        """Send an export; return why it was not taken, in our own words."""
        deadline, pause = time.monotonic() + self._timeout, PAUSE
        while True:
            trouble, wait = self._tried(path, body, deadline)
            pause, longer = (pause if wait is None else wait), pause * 2
            hopeless = trouble is None or wait == -1.0 or time.monotonic() + pause >= deadline
            if hopeless or self._hurried.wait(pause):
                return trouble
            pause = longer

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _tried(self, path: str, body: bytes, deadline: float) -> tuple[str | None, float | None]:
        """Send an export once. Returns why it was not taken, and the seconds to wait (None: as usual, -1: for ever)."""
        reused = self._connection is not None
        try:
            return _verdict(self._answer(path, body, deadline))
        except TimeoutError:
            self.close()
            return TOO_SLOW, None
        except (OSError, HTTPException):
            self.close()
            if reused:  # the collector may have closed an idle connection
                return self._tried(path, body, deadline)
            return UNREACHED, None

    def _answer(self, path: str, body: bytes, deadline: float) -> HTTPResponse:
        left = max(deadline - time.monotonic(), 0.01)
        connection = self._connection
        if connection is None:
            connection = self._connection = self._new(left)
        elif connection.sock is not None:
            connection.sock.settimeout(left)
        connection.request("POST", f"{self._path}{path}", body, self._headers)
        response = connection.getresponse()
        if response.length is None or response.length > MOST_ANSWER:
            self.close()
        else:
            response.read()
        return response

    def _new(self, timeout: float) -> HTTPConnection:
        if not self._secure:
            return HTTPConnection(self._host, self._port, timeout=timeout)
        return HTTPSConnection(self._host, self._port, timeout=timeout, context=ssl.create_default_context())


def _verdict(response: HTTPResponse) -> tuple[str | None, float | None]:
    status = response.status
    if 200 <= status < 300:
        return None, None
    trouble = f"the collector answers with status {status}"
    if status not in REPEATED:
        return trouble, -1.0
    wait = response.headers.get("retry-after", "")
    return trouble, float(wait) if wait.isdecimal() and len(wait) < 6 else None
