"""Requests that may be refused before they are parsed; the normal path reads and answers the same bytes equally."""

from collections.abc import Mapping
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from providers.unified_request import Operation
from proxy.errors import OverloadReason
from proxy.listener.cors_and_host_names import BrowserGuard
from proxy.listener.fast_head_parser import head_fault
from proxy.overload.admission_limits import Admission, AdmissionLimits, ShedRules
from proxy.overload.refusal_responses import RefusalResponses
from proxy.overload.refuse_before_parsing import MAX_HEAD, EarlyRefusal, read_whole_request
from proxy.overload.start_queue import StartQueue, StartQueueRules
from proxy.surfaces.registry import SURFACES, surface_for_path
from proxy.surfaces.surface import Surface
from tests.proxy.kit import smuggled_requests as smuggling
from tests.proxy.kit.parsed_requests import parsed
from tests.proxy.overload.test_admission_limits import Gauge
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


PATHS = [
    (surface, endpoint.path)
    for surface in SURFACES
    for endpoint in surface.endpoints
    if isinstance(endpoint.action, Operation) and "{" not in endpoint.path
]
SOUND = {"Host": "localhost", "Content-Length": "2"}


def request_bytes(path: str = "/v1/completions", more: Mapping[str, str] | None = None, body: bytes = b"{}") -> bytes:
    """Return a request's bytes."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in {**SOUND, **(more or {})}.items())
    return f"POST {path} HTTP/1.1\r\n{fields}\r\n".encode("latin-1") + body


@looped(("surface", "path"), PATHS)
def test_every_path_without_a_variable_that_takes_a_request_is_known_with_its_surface(
    surface: Surface, path: str
) -> None:
    door, _ = early_refusal()
    assert door.read(request_bytes(path)) == (surface, 2)


@looped(
    "more",
    [
        {},
        {"Authorization": "Bearer dk-x", "content-type": "application/json", "USER-AGENT": "x"},
        {"Connection": "keep-alive"},
        {"connection": "Keep-Alive"},
        {"x-stainless-lang": "python", "Cookie": "a=b", "accept-encoding": "gzip", "empty": ""},
        {"Content-Encoding": "gzip", "TE": "trailers", "Keep-Alive": "timeout=5", "x-real-ip": "::1"},
        {"Sec-Fetch-Mode": "cors"},  # fetch() of Node 20
    ],
)
def test_what_clients_send_is_read(more: Mapping[str, str]) -> None:
    assert read_whole_request(request_bytes(more=more)) == (b"/v1/completions", 2, b"localhost")


LEFT_ALONE = {
    "another method": request_bytes().replace(b"POST", b"GET"),
    "another version": request_bytes().replace(b"1.1", b"1.0"),
    "a query": request_bytes("/v1/completions?a=b"),
    "an escape": request_bytes("/v1/%63ompletions"),
    "a whole address": request_bytes("http://localhost/v1/completions"),
    "no host": request_bytes().replace(b"Host: localhost\r\n", b""),
    "two hosts": request_bytes(more={"host": "localhost"}),
    "no length": request_bytes().replace(b"Content-Length: 2\r\n", b""),
    "two lengths": request_bytes(more={"content-length": "2"}),
    "a length that is none": request_bytes(more={"Content-Length": "+2"}),
    "a length after two spaces": request_bytes(more={"Content-Length": " 2"}),
    "two types": request_bytes(more={"Content-Type": "a", "content-type": "a"}),
    "two agents": request_bytes(more={"User-Agent": "a", "user-agent": "a"}),
    "chunks": request_bytes(more={"Transfer-Encoding": "chunked"}),
    "no chunks": request_bytes(more={"Transfer-Encoding": "identity"}),
    "an invitation": request_bytes(more={"Expect": "100-continue"}),
    "another protocol": request_bytes(more={"Upgrade": "h2c"}),
    "the end": request_bytes(more={"Connection": "close"}),
    "the end and not": request_bytes(more={"Connection": "keep-alive, close"}),
    "the end for a proxy": request_bytes(more={"Proxy-Connection": "close"}),
    "an id to echo": request_bytes(more={"X-Request-Id": "abc"}),
    "a page": request_bytes(more={"Origin": "https://evil.example"}),
    "a page without its origin": request_bytes(more={"sec-fetch-site": "cross-site"}),
    "another host": request_bytes(more={"Host": "evil.example"}),
    "an old key": request_bytes(more={"Sec-WebSocket-Key1": "x"}),
    "a folded line": request_bytes(more={"a": "b\r\n c"}),
    "a space before the colon": request_bytes(more={"a ": "b"}),
    "no name": request_bytes(more={"": "b"}),
    "no colon": request_bytes().replace(b"Host: ", b"abc\r\nHost: "),
    "a control": request_bytes(more={"a": "b\x0bc"}),
    "a byte beyond ASCII": request_bytes(more={"a": "\xe9"}),
    "a bare line feed": request_bytes(more={"a": "b\nc"}),
    "a bare return": request_bytes(more={"a": "b\rc"}),
    "a line before": b"\r\n" + request_bytes(),
    "less than its body": request_bytes(body=b"{"),
    "more than its body": request_bytes(body=b"{} "),
    "two requests": request_bytes() + request_bytes(),
    "half of another": request_bytes() + b"POST",
    "a head without its end": request_bytes(body=b"")[:-2],
    "a long head": request_bytes(more={"a": "x" * MAX_HEAD}),
    "many fields": request_bytes(more={f"a{number}": "" for number in range(65)}),
    "nothing": b"",
}


@looped("data", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_anything_else_is_left_to_the_parser(data: bytes) -> None:
    door, _ = early_refusal()
    assert door.read(data) is None


@looped("name", smuggling.REFUSED)
def test_nothing_that_servers_read_differently_is_read(name: str) -> None:
    data = smuggling.REFUSED[name].replace(b" /x ", b" /v1/completions ")
    assert read_whole_request(data) is None


TOKENS = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"(),/:;<=>?@[\\]{}')
RULED = (
    *("Host", "host", "CONTENT-LENGTH", "Content-Length", "content-type", "Content-Type", "User-Agent", "Connection"),
    *(
        "proxy-connection",
        "Transfer-Encoding",
        "Upgrade",
        "Expect",
        "X-Request-ID",
        "x-request-i",
        "Sec-WebSocket-Key1",
        "Origin",
        "Sec-Fetch-Site",
    ),
    *(
        "Server",
        "ETag",
        "Max-Forwards",
        "Content-Range",
        "Content-Location",
        "Content-Encoding",
        "HTTP2-Settings",
        "TE",
    ),
    *("Trailer", "Cookie", "X-Forwarded-For", "Keep-Alive", "Via", "Accept", "HTTP2-Settings"),
)
NAMES = st.one_of(st.text(TOKENS, min_size=1, max_size=20), st.sampled_from(RULED))
FRAMING = ("2", " 2", "0", "02", "2 ", "chunked", "keep-alive", "Keep-Alive", "close", "h2c", "100-continue")
VALUES = st.one_of(st.text(st.characters(codec="latin-1"), max_size=12), st.sampled_from(FRAMING))
COLONS = st.sampled_from([": ", ":", ":  ", ":\t", " : "])
HEADS = st.lists(st.tuples(NAMES, COLONS, VALUES), max_size=8)


@given(
    HEADS, st.sampled_from([path for _, path in PATHS] + ["/", "/v1//completions", "/V1/completions"]), st.booleans()
)
@example([("Host", ": ", "a"), ("Content-Length", ": ", "002")], "/v1/completions", False)
def test_no_more_is_read_than_the_parser_reads(fields: list[tuple[str, str, str]], path: str, framed: bool) -> None:
    start = [("Host", ": ", "a"), ("Content-Length", ": ", "2")] if framed else []
    lines = "".join(f"{name}{colon}{value}\r\n" for name, colon, value in start + fields)
    data = f"POST {path} HTTP/1.1\r\n{lines}\r\n{{}}".encode("latin-1")
    found = read_whole_request(data)
    if found is None:
        return
    ((message, payload),) = parsed(data)
    headers = message.headers
    assert found == (message.path.encode(), int(headers["Content-Length"]), headers["Host"].encode("latin-1"))
    assert head_fault(message) is None
    assert payload.is_eof()
    assert (message.method, message.path, message.should_close) == ("POST", path, False)
    assert (message.upgrade, message.chunked) == (False, False)
    assert not {"expect", "x-request-id", "origin", "sec-fetch-site"} & {name.lower() for name in message.headers}


def early_refusal(
    gauge: Gauge | None = None, limits: AdmissionLimits | None = None
) -> tuple[EarlyRefusal, list[tuple[str, int, OverloadReason, int]]]:
    """Return an early refusal under the pressure that a gauge reports, and the list of its reports."""
    gauge = gauge or Gauge(share=1.0)
    line = StartQueue(StartQueueRules(), mock.Mock(), lambda: 0.0)
    admission = Admission(limits or AdmissionLimits(), ShedRules(), gauge, line, gauge, gauge.draw)
    tales: list[tuple[str, int, OverloadReason, int]] = []
    gateway = mock.Mock(draining=False, refusals=RefusalResponses())
    guard = BrowserGuard("127.0.0.1", (), ())
    return EarlyRefusal(gateway, admission, line, 1000, guard, lambda *tale: tales.append(tale)), tales


def test_what_was_refused_is_told_once_by_surface_and_reason_with_the_status_that_was_sent() -> None:
    gauge = Gauge(share=1.0)
    door, tales = early_refusal(gauge)
    for path in ("/v1/completions", "/v1/chat/completions", "/v5/completions", "/v1/messages"):
        assert door.refusal((surface_for_path(path), 2)) is not None
    door.look()
    assert tales == [
        ("openai", 503, OverloadReason.MEMORY, 2),
        ("scale", 503, OverloadReason.MEMORY, 1),
        ("anthropic", 529, OverloadReason.MEMORY, 1),
    ]
    door.look()
    assert len(tales) == 3


def test_requests_go_to_the_door_first_as_long_as_some_are_refused() -> None:
    gauge = Gauge(share=1.0)
    door, _ = early_refusal(gauge)
    for _ in range(3):
        assert door.refusal((SURFACES[0], 2))
        door.look()
        assert door.admission.sheds
    gauge.share = 0.0
    assert door.refusal((SURFACES[0], 2)) is None
    door.look()
    assert not door.admission.sheds


def test_those_who_are_let_in_at_once_count_under_the_lids() -> None:
    door, _ = early_refusal(Gauge(), AdmissionLimits(requests=2))
    for _ in range(2):
        assert door.refusal((SURFACES[0], 2)) is None
        door.admit((SURFACES[0], 2))
    assert door.queue.coming == 2
    assert door.refusal((SURFACES[0], 2)) is not None


def test_a_body_beyond_the_limit_and_a_gateway_that_drains_are_none_of_its_business() -> None:
    door, _ = early_refusal()
    assert door.read(request_bytes(more={"Content-Length": "1000"}, body=b"x" * 1000)) is not None
    assert door.read(request_bytes(more={"Content-Length": "1001"}, body=b"x" * 1001)) is None
    door.gateway.draining = True
    assert door.read(request_bytes()) is None
