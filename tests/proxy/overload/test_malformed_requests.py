"""Bytes that are not an HTTP request are refused, counted and logged, and the log contains none of them."""

import ssl
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import orjson
import pytest

from proxy.overload.malformed_requests import MalformedRequests
from proxy.telemetry.access_log import MALFORMED_LINES
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.whole_gateway import MOCK, port_of, up

pytestmark = pytest.mark.smoke


def client_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="canary.example").do_handshake()
    return outgoing.read()


SENT = {
    "garbage": b"canary\x00\xff\r\n\r\n",
    "TLS": client_hello(),
    "a long header": b"GET /v1/models HTTP/1.1\r\nHost: h\r\nX-Canary: " + b"x" * 20_000 + b"\r\n\r\n",
    "no Host": b"GET /v1/models HTTP/1.1\r\nX-Canary: x\r\n\r\n",
    "a target that is no path": b"GET canary HTTP/1.1\r\nHost: h\r\n\r\n",
}


@pytest.mark.parametrize("what", SENT)
async def test_what_cannot_be_read_is_counted_and_told_of(tmp_path: Path, what: str) -> None:
    log = BytesIO()
    async with up(MOCK, tmp_path, log) as app:
        statuses = [(await exchange(port_of(app.url), SENT[what])).status for _ in range(3)]
        assert (await exchange(port_of(app.url), request("GET", "/v1/models"))).status == 200
    status, same = statuses[0], set(statuses)
    assert (len(same), status // 100) == (1, 4)
    lines = [orjson.loads(line) for line in log.getvalue().splitlines()]
    counted = sum(line["count"] if line["message"] == "malformed HTTP" else line["status"] == status for line in lines)
    assert counted == 3
    assert "canary" not in log.getvalue().decode().lower()
    (series,) = (line for line in app.front.metrics.render().decode().splitlines() if f'code="{status}"' in line)
    assert series.startswith("dragoman_requests_total{")
    assert series.endswith(" 3.0")
    assert "canary" not in series.lower()


def test_a_look_tells_what_came_since_the_last_one_and_nothing_where_nothing_did() -> None:
    told: list[Mapping[int, int]] = []
    malformed = MalformedRequests(told.append)
    malformed.look()
    for status in (400, 431, 400):
        malformed.count(status)
    malformed.look()
    malformed.look()
    malformed.count(408)
    malformed.look()
    assert told == [{400: 2, 431: 1}, {408: 1}]


def test_the_line_tells_how_many_of_each_status_in_both_forms() -> None:
    line = orjson.loads(MALFORMED_LINES["json"]({431: 1, 400: 2}))
    assert (line["message"], line["level"], line["count"]) == ("malformed HTTP", "warning", 3)
    assert line["statuses"] == {"400": 2, "431": 1}
    assert MALFORMED_LINES["text"]({431: 1, 400: 2}).endswith(b"Z malformed HTTP refused: 2 with 400, 1 with 431")
