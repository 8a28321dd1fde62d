"""A web page in the browser of a user who runs the gateway can neither spend, read nor change anything.

Every request is one that a browser sends for a page. Pages cannot set Host, Origin or Sec-Fetch-*.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from io import BytesIO
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from proxy.process.assemble_app import Addresses, WholeGateway
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import Surface
from tests.proxy.kit.gateway_rig import AUTH, ask, rig
from tests.proxy.kit.raw_client import Answer, connected, exchange, request
from tests.proxy.kit.whole_gateway import port_of, table_before, up
from tests.support.gateway import running_gateway
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.looped import looped
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor import FakeVendor

EVIL = "https://evil.example"
APP = "https://app.example.com"
PAGE = {"Origin": EVIL, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
FORM = {"Origin": "null", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
JSON = {"Content-Type": "application/json"}
SIMPLE = ("text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
"""Headers that a page may send without a preflight."""
CORS = "server: {cors: {origins: ['https://app.example.com', 'http://localhost:*']}}\n"
ADMIN_PATHS = [("GET", "/metrics"), ("GET", "/status"), ("POST", "/-/reload"), ("GET", "/health/ready"), ("GET", "/x")]


@pytest_asyncio.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    """A vendor that serves every completion, and counts its requests."""
    async with FakeVendor(json_answer(200, completion("hello", "m"))) as made:
        yield made


@pytest_asyncio.fixture
async def laptop(vendor: FakeVendor, tmp_path: Path) -> AsyncIterator[WholeGateway]:
    """A gateway without teams and without an admin token, on loopback."""
    async with up(table_before(vendor), tmp_path) as app:
        yield app


@pytest_asyncio.fixture
async def shared(vendor: FakeVendor, tmp_path: Path) -> AsyncIterator[WholeGateway]:
    """The same gateway, with two allowed origins."""
    folder = tmp_path / "shared"
    folder.mkdir()
    async with up(table_before(vendor) + CORS, folder) as app:
        yield app


async def public(app: WholeGateway, method: str, path: str, body: object = None, **headers: str) -> Answer:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return await exchange(port_of(app.url), request(method, path, body, fields))  # type: ignore[arg-type]  # JSON


async def admin(app: WholeGateway, method: str, path: str, headers: Mapping[str, str]) -> Answer:
    return await exchange(port_of(app.admin_url), request(method, path, None, headers))


# DNS rebinding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example"]
)
async def test_threat_13_a_page_that_rebound_its_name_spends_nothing_and_reads_nothing(
    laptop: WholeGateway, vendor: FakeVendor, host: str
) -> None:
    own = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin", **JSON}
    for headers in (own, {"Host": host, **JSON}):
        answer = await exchange(port_of(laptop.url), request("POST", "/v1/completions", ask(), headers))
        assert (answer.status, answer.code) == (421, "host_not_served")
        assert host in answer.message
        assert "server.hosts" in answer.message
        listed = await exchange(port_of(laptop.url), request("GET", "/v1/models", None, headers))
        assert listed.status == 421
        assert b"v/m" not in listed.body
    assert vendor.connections == 0


@pytest.mark.parametrize(("method", "path"), ADMIN_PATHS)
async def test_threat_13_a_page_that_rebound_its_name_learns_nothing_of_the_admin_listener(
    laptop: WholeGateway, method: str, path: str
) -> None:
    before = laptop.reloader._table
    answer = await admin(laptop, method, path, {"Host": "evil.example:9091"})
    assert answer.status == 421
    assert "server.admin.hosts" in str(answer.json()["error"])
    assert laptop.reloader._table is before


async def test_threat_13_a_host_in_the_target_is_no_way_around(laptop: WholeGateway, vendor: FakeVendor) -> None:
    port = port_of(laptop.url)
    for host in ("evil.example", "localhost"):
        data = request("POST", "http://evil.example/v1/completions", ask(), {"Host": host})
        assert (await exchange(port, data)).status in (400, 421)
    assert (await exchange(port, request("POST", "http://localhost/v1/completions", ask()))).status == 200
    assert vendor.connections == 1


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "localhost.", "app.localhost:1", "127.0.0.1:8080", "[::1]:80"]
)
async def test_loopback_names_are_served_on_both_listeners(laptop: WholeGateway, host: str) -> None:
    assert (await public(laptop, "POST", "/v1/completions", ask(), Host=host)).status == 200
    assert (await admin(laptop, "GET", "/metrics", {"Host": host})).status == 200


async def test_a_probe_of_http_1_0_needs_no_host(laptop: WholeGateway) -> None:
    data = b"GET /health/ready HTTP/1.0\r\n\r\n"
    for url in (laptop.url, laptop.admin_url):
        assert (await exchange(port_of(url), data)).status == 200


async def test_names_that_a_proxy_beside_the_gateway_passes_on_are_listed(vendor: FakeVendor, tmp_path: Path) -> None:
    hosts = "server: {hosts: [llm.example.com, '*.corp.example'], admin: {hosts: [ops.example.com]}}\n"
    async with up(table_before(vendor) + hosts, tmp_path) as app:
        for host in ("llm.example.com", "LLM.example.com:443", "a.corp.example", "localhost"):
            assert (await public(app, "POST", "/v1/completions", ask(), Host=host)).status == 200
            own = await public(app, "POST", "/v1/completions", ask(), Host=host, Origin=f"https://{host.lower()}")
            assert own.status == 200
        assert (await public(app, "GET", "/v1/models", Host="ops.example.com")).status == 421
        assert (await admin(app, "GET", "/status", {"Host": "ops.example.com"})).status == 200
        assert (await admin(app, "GET", "/status", {"Host": "llm.example.com"})).status == 421


async def test_probes_and_scrapes_of_a_pod_pass_by_whatever_name_they_use(vendor: FakeVendor, tmp_path: Path) -> None:
    anywhere = Addresses("0.0.0.0", 0, "0.0.0.0", 0)
    teams = f"teams: {{us: {{keys: ['sha256:{'0' * 64}'], models: ['*']}}}}\n"
    token = "admin: {token: secret}"
    async with up(table_before(vendor) + teams + f"server: {{{token}}}\n", tmp_path, listen=anywhere) as app:
        for host in ("10.1.2.3:8080", "dragoman", "dragoman-admin.default.svc:9091", "[fd00::7]:8080"):
            assert (await public(app, "GET", "/health/ready", Host=host)).status == 200
            assert (await admin(app, "GET", "/metrics", {"Host": host, "Authorization": "Bearer secret"})).status == 200
    listed = f"server: {{hosts: [llm.example.com], {token}}}\n"
    async with up(table_before(vendor) + teams + listed, tmp_path, listen=anywhere) as app:
        for host, status in (("10.1.2.3:8080", 200), ("llm.example.com", 200), ("evil.example", 421)):
            assert (await public(app, "GET", "/health/ready", Host=host)).status == status


# Requests of pages of other origins ----------------------------------------------------------------------------------


@looped("kind", [*SIMPLE, "application/json", None])
@looped("page", [PAGE, FORM, {"Origin": EVIL}, {"Origin": "http://localhost:3000"}, {"Origin": "null"}])
async def test_threat_13_a_page_of_another_site_cannot_spend(
    laptop: WholeGateway, vendor: FakeVendor, page: Mapping[str, str], kind: str | None
) -> None:
    headers = {**page, **({} if kind is None else {"Content-Type": kind})}
    answer = await exchange(port_of(laptop.url), request("POST", "/v1/completions", ask(), headers))
    assert (answer.status, answer.code) == (403, "origin_not_allowed")
    assert "server.cors.origins" in answer.message
    assert "access-control-allow-origin" not in answer.headers
    assert vendor.connections == 0


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/models"), ("GET", "/health/ready"), ("GET", "/nowhere")])
async def test_threat_13_a_page_of_another_site_cannot_read(laptop: WholeGateway, method: str, path: str) -> None:
    for headers in (PAGE, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}):
        answer = await exchange(port_of(laptop.url), request(method, path, None, headers))
        assert (answer.status, answer.code) == (403, "origin_not_allowed")


@pytest.mark.parametrize(("method", "path"), ADMIN_PATHS)
async def test_threat_13_a_page_of_another_site_can_neither_reload_nor_read_metrics_and_status(
    laptop: WholeGateway, method: str, path: str
) -> None:
    before = laptop.reloader._table
    for headers in (
        PAGE,
        FORM,
        {"Origin": f"http://127.0.0.1:{port_of(laptop.url)}"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        answer = await admin(laptop, method, path, headers)
        assert answer.status == 403
        assert isinstance(answer.json()["error"], str)
        assert "access-control-allow-origin" not in answer.headers
    assert laptop.reloader._table is before


@looped("surface", SURFACES, ids=lambda surface: surface.name)
async def test_threat_13_a_page_is_refused_in_its_surface_s_envelope_before_its_key_is_looked_at(
    surface: Surface,
) -> None:
    endpoint = surface.endpoints[0]
    async with rig() as served:
        for key in (AUTH, {"Authorization": "Bearer wrong"}, {}):
            data = request("POST", endpoint.path, ask(), {**PAGE, **key, "x-request-id": "abc"})
            answer = await exchange(served.port, data)
            assert answer.status == 403
            # Anthropic's envelope has the code in its details.
            assert "origin_not_allowed" in str(answer.error())
            assert answer.headers["x-request-id"] == "abc"
        assert served.vendor.connections == 0
        records = await served.finished(3)
    assert {(record.status, record.code, record.outcome) for record in records} == {
        (403, "origin_not_allowed", "denied")
    }


async def test_threat_13_a_page_under_overload_is_still_refused_as_one() -> None:
    async with rig() as served:
        served.memory.share = 0.99
        await served.post("/v1/completions", ask())
        for headers, status in (({}, 503), (PAGE, 403), ({"Host": "evil.example"}, 421)):
            assert (await served.post("/v1/completions", ask(), headers)).status == status
        served.memory.share = 0.0


@pytest.mark.parametrize("kind", [*SIMPLE, "TEXT/PLAIN", "application/octet-stream", "application/jsonx", "", "json"])
async def test_threat_13_a_body_that_is_not_called_json_is_refused(
    laptop: WholeGateway, vendor: FakeVendor, kind: str
) -> None:
    answer = await public(laptop, "POST", "/v1/completions", ask(), Content_Type=kind)
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert "'content-type: application/json'" in answer.message
    assert vendor.connections == 0


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8", "application/ld+json"],
)
async def test_json_is_taken_by_all_its_names_and_without_one(laptop: WholeGateway, kind: str) -> None:
    assert (await public(laptop, "POST", "/v1/completions", ask(), Content_Type=kind)).status == 200
    assert (await public(laptop, "POST", "/v1/completions", ask())).status == 200


NO_PAGES: Mapping[str, Mapping[str, str]] = {
    "openai for Python": {"User-Agent": "OpenAI/Python 2.1.0", "X-Stainless-Lang": "python", **JSON},
    "openai for Node": {"User-Agent": "OpenAI/JS 6.1", "Sec-Fetch-Mode": "cors", "Accept-Language": "*", **JSON},
    "curl": {"User-Agent": "curl/8.10", "Accept": "*/*", **JSON},
    "a page of the gateway's own": {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin", **JSON},
    "a page behind a proxy that changes the host": {
        "Origin": "https://llm.corp",
        "Sec-Fetch-Site": "same-origin",
        **JSON,
    },
}


@pytest.mark.parametrize("headers", NO_PAGES.values(), ids=NO_PAGES)
async def test_clients_that_are_no_foreign_pages_are_served(laptop: WholeGateway, headers: Mapping[str, str]) -> None:
    answer = await exchange(port_of(laptop.url), request("POST", "/v1/completions", ask(), headers))
    assert answer.status == 200
    assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_an_operator_opens_the_status_page_from_a_link(laptop: WholeGateway) -> None:
    link = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
        "Accept": "text/html",
    }
    answer = await admin(laptop, "GET", "/status", link)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")


# Pages that the operator allows --------------------------------------------------------------------------------------

PREFLIGHT = {
    "Origin": APP,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os",
}


@looped("path", ["/v1/chat/completions", "/v5/completions", "/v1/models", "/nowhere", "/health/ready"])
async def test_a_preflight_of_a_listed_origin_needs_no_key_on_any_path(path: str) -> None:
    async with rig() as served:
        served.guard.exchange((), [APP])
        async with connected(served.port) as client:
            await client.send(request("OPTIONS", path, None, PREFLIGHT))
            status, headers = await client.head()
            assert status == 204
            # The connection serves the request that follows.
            await client.send(request("GET", "/v1/models", None, {**AUTH, "Origin": APP}))
            assert (await client.answer()).status == 200
    assert headers["access-control-allow-origin"] == APP
    assert headers["vary"] == "Origin"
    assert headers["access-control-allow-methods"] == "GET, POST, DELETE"
    assert headers["access-control-allow-headers"] == PREFLIGHT["Access-Control-Request-Headers"]
    assert headers["access-control-max-age"] == "7200"
    assert "access-control-allow-credentials" not in headers
    assert "content-length" not in headers


async def test_a_preflight_of_another_origin_is_refused_and_other_options_stay_405(
    shared: WholeGateway, laptop: WholeGateway
) -> None:
    for app in (shared, laptop):
        asked = {**PREFLIGHT, "Origin": EVIL}
        refused = await exchange(port_of(app.url), request("OPTIONS", "/v1/completions", None, asked))
        assert (refused.status, refused.code) == (403, "origin_not_allowed")
        assert not [name for name in refused.headers if name.startswith("access-control-")]
        assert (await public(app, "OPTIONS", "/v1/completions")).status == 405
    assert (await public(shared, "OPTIONS", "/v1/completions", Origin=APP)).status == 405


@pytest.mark.parametrize("origin", [APP, "http://localhost:5173"])
async def test_a_page_of_a_listed_origin_reads_answers_errors_and_streams(origin: str) -> None:
    async with rig() as served:
        served.guard.exchange((), [APP, "http://localhost:*"])
        page = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
        served.vendor.default = json_answer(200, completion("hello", "m"))
        answers = [
            await served.post("/v1/completions", ask(), page),
            await served.get("/v1/models", {**AUTH, **page}),
            await served.get("/health/ready", page),
            await served.get("/v1/models", page),  # no key
            await served.get("/nowhere", page),
            await served.post("/v1/completions", b"{", page),
            await served.post("/v1/completions", b"x" * 200_000, page),
            await served.post("/v1/completions", ask(), {**page, "Content-Type": "text/plain"}),
        ]
        served.vendor.default = sse_answer(completion_frames(["one", "two"]))
        answers.append(await served.post("/v1/completions", ask(stream=True), page))
        served.memory.share = 0.99
        answers += [await served.post("/v1/completions", ask(), page) for _ in range(2)]
        served.memory.share = 0.0
    assert [answer.status for answer in answers] == [200, 200, 200, 401, 404, 400, 413, 415, 200, 503, 503]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == origin
        assert answer.headers["vary"] == "Origin"
        assert "x-request-id" in answer.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in answer.headers


async def test_pages_of_one_origin_do_not_let_those_of_another_in(shared: WholeGateway, vendor: FakeVendor) -> None:
    for origin in (EVIL, "null", f"{APP}.evil.example", "http://app.example.com", "http://localhost.evil.example:80"):
        answer = await public(shared, "POST", "/v1/completions", ask(), Origin=origin)
        assert (answer.status, answer.code) == (403, "origin_not_allowed")
    assert vendor.connections == 0
    assert (await admin(shared, "GET", "/metrics", {"Origin": APP})).status == 403


async def test_a_reload_takes_other_hosts_and_origins(laptop: WholeGateway, vendor: FakeVendor, tmp_path: Path) -> None:
    both = "server: {hosts: [llm.example.com], cors: {origins: ['https://app.example.com']}}\n"
    (tmp_path / "t.yaml").write_text(table_before(vendor) + both, encoding="utf-8")
    assert (await public(laptop, "GET", "/v1/models", Host="llm.example.com")).status == 421
    assert (await public(laptop, "GET", "/v1/models", Origin=APP)).status == 403
    assert (await admin(laptop, "POST", "/-/reload", {})).status == 200
    assert (await public(laptop, "GET", "/v1/models", Host="llm.example.com")).status == 200
    assert (await public(laptop, "GET", "/v1/models", Origin=APP)).status == 200


async def test_what_is_refused_is_in_the_log(vendor: FakeVendor, tmp_path: Path) -> None:
    log = BytesIO()
    async with up(table_before(vendor), tmp_path, log) as app:
        await public(app, "POST", "/v1/completions", ask(), Host="evil.example")
        await public(app, "POST", "/v1/completions", ask(), Origin=EVIL)
    lines = [orjson.loads(line) for line in log.getvalue().splitlines()]
    assert [(line["status"], line["code"]) for line in lines] == [(421, "host_not_served"), (403, "origin_not_allowed")]


async def test_threat_13_several_processes_keep_the_same_rules(tmp_path: Path) -> None:
    server = "server:\n  port: ${PORT}\n  workers: 2\n  hosts: [llm.example.com]\n  admin:\n    port: ${ADMIN_PORT}\n"
    mock = "version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {}}\n"
    async with running_gateway(mock + server, tmp_path) as gateway:
        port, admin_port = port_of(gateway.url), port_of(gateway.admin_url)
        for headers, status in (
            ({}, 200),
            ({"Host": "llm.example.com"}, 200),
            ({"Host": "evil.example"}, 421),
            (PAGE, 403),
        ):
            answers = await asyncio.gather(
                *(exchange(port, request("POST", "/v1/completions", ask("mock/echo"), headers)) for _ in range(4))
            )
            assert {answer.status for answer in answers} == {status}
        for headers, status in (({}, 200), ({"Host": "evil.example"}, 421), (PAGE, 403)):
            assert (await exchange(admin_port, request("GET", "/status", None, headers))).status == status
