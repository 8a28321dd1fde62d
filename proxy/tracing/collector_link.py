"""Sends exports to a collector: OTLP over HTTP, over one connection, from the exporter's thread.

Only the address of the configuration is used: no proxies of the environment, and no redirects, which would carry the
configured headers to another host. A failed export is repeated if OTLP 1.x permits it (429, 502, 503, 504, or no
response), within the time limit of one export. Only the head of a response is used.
"""

import ssl
import threading
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from proxy.version import USER_AGENT

MOST_RESPONSE: Final = 4096
"""The most bytes of a response that are read in order to reuse its connection. After a longer response the connection
is closed."""

PAUSE: Final = 1.0
"""Seconds before an export is repeated, doubled each time, unless the collector sets the time."""

REPEATED_STATUSES: Final = frozenset({429, 502, 503, 504})

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
        self._ending = threading.Event()

    def stop_repeating(self) -> None:
        """Repeat no failed export from now on, because the process ends. This may be called in any thread."""
        self._ending.set()

    def post(self, path: str, body: bytes) -> str | None:
        """Send an export. Return the reason why it was not accepted, in the gateway's own words; `None` if it was
        accepted."""
        deadline, pause = time.monotonic() + self._timeout, PAUSE
        while True:
            trouble, wait = self._send_once(path, body, deadline)
            pause, longer = (pause if wait is None else wait), pause * 2
            final = trouble is None or wait == -1.0 or time.monotonic() + pause >= deadline
            if final or self._ending.wait(pause):
                return trouble
            pause = longer

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _send_once(self, path: str, body: bytes, deadline: float) -> tuple[str | None, float | None]:
        """Send an export once. Return the reason why it was not accepted, and the seconds to wait before a repeat
        (`None`: the default, -1: do not repeat)."""
        reused = self._connection is not None
        try:
            return _result_of(self._response(path, body, deadline))
        except TimeoutError:
            self.close()
            return TOO_SLOW, None
        except (OSError, HTTPException):
            self.close()
            if reused:  # the collector may have closed an idle connection
                return self._send_once(path, body, deadline)
            return UNREACHED, None

    def _response(self, path: str, body: bytes, deadline: float) -> HTTPResponse:
        left = max(deadline - time.monotonic(), 0.01)
        connection = self._connection
        if connection is None:
            connection = self._connection = self._new(left)
        elif connection.sock is not None:
            connection.sock.settimeout(left)
        connection.request("POST", f"{self._path}{path}", body, self._headers)
        response = connection.getresponse()
        if response.length is None or response.length > MOST_RESPONSE:
            self.close()
        else:
            response.read()
        return response

    def _new(self, timeout: float) -> HTTPConnection:
        if not self._secure:
            return HTTPConnection(self._host, self._port, timeout=timeout)
        return HTTPSConnection(self._host, self._port, timeout=timeout, context=ssl.create_default_context())


def _result_of(response: HTTPResponse) -> tuple[str | None, float | None]:
    status = response.status
    if 200 <= status < 300:
        return None, None
    trouble = f"the collector answers with status {status}"
    if status not in REPEATED_STATUSES:
        return trouble, -1.0
    wait = response.headers.get("retry-after", "")
    return trouble, float(wait) if wait.isdecimal() and len(wait) < 6 else None
