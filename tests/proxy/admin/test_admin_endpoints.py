"""The admin listener over real sockets: its pages, and the clients that may read them."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from providers.failure import Failure, FailureKind
from providers.json_types import JsonValue
from proxy.deployment_health import circuit_breaker as health
from proxy.telemetry.cached_exposition import CACHE_SECONDS
from proxy.telemetry.metrics import Metrics
from proxy.version import VERSION
from tests.proxy.admin.operators import BEARER, TABLE, TOKEN, Operator, said, up
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import Answer, connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of
from tests.support.looped import looped


@pytest.mark.smoke
async def test_a_scrape_is_what_prometheus_reads(operator: Operator) -> None:
    answer = await operator.ask("GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == Metrics.content_type
    assert answer.headers["server"] == "dragoman"
    names = {family.name for family in text_string_to_metric_families(answer.body.decode())}
    assert {"dragoman_build_info", "dragoman_config_info", "dragoman_config_last_reload_successful"} <= names


@pytest.mark.smoke
async def test_scrapes_within_a_second_cost_what_one_does(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def generate(registry: object) -> bytes:
        made.append(b"# scrape %d\n" % len(made))
        return made[-1]

    monkeypatch.setattr("proxy.telemetry.metrics.generate_latest", generate)
    answers = await asyncio.gather(*(operator.ask("GET", "/metrics") for _ in range(20)))
    assert {answer.body for answer in answers} == {b"# scrape 0\n"}
    assert (await operator.ask("GET", "/metrics", {"Cache-Control": "no-cache"})).body == b"# scrape 1\n"
    assert (await operator.ask("GET", "/metrics")).body == b"# scrape 1\n"
    later = time.monotonic() + CACHE_SECONDS
    monkeypatch.setattr("proxy.telemetry.cached_exposition.time.monotonic", lambda: later)
    assert (await operator.ask("GET", "/metrics")).body == b"# scrape 2\n"


async def test_health_is_told_as_on_the_public_port(operator: Operator) -> None:
    for path in ("/health", "/health/live", "/health/ready"):
        assert (await operator.ask("GET", path)).status == 200
    operator.app.front.gateway.ready = False
    assert (await operator.ask("GET", "/health/live")).status == 200
    assert (await operator.ask("GET", "/health/ready")).status == 503


async def test_the_status_names_the_table_and_what_it_holds(operator: Operator) -> None:
    body = (await operator.ask("GET", "/status")).json()
    assert isinstance(body["table"], str)
    assert len(body.pop("table") or "") == 64  # type: ignore[arg-type]  # just seen to be text
    ledger = body.pop("ledger")
    assert str(ledger).startswith(str(operator.path.with_name("ledger.db")))
    assert int(str(body.pop("uptime_s"))) < 600
    assert body.pop("ledger_rows_waiting") in (None, 0)  # unknown in the first moments
    recent = body.pop("recent")
    assert isinstance(recent, dict)
    assert recent["deployments"] == {}
    assert body == {
        "version": VERSION,
        "ready": True,
        "in_flight": 0,
        "log_lines_dropped": 0,
        "teams": ["search"],
        "routes": ["fast"],
        "deployments": ["mock/*/default", "mock/echo/default"],
        "out_of_service": [],
        "shared": "off",
        "unavailable": [],
        "last_failures": [],
        "limited": [],
        "model_lists": [],
        "limits": [],
        "limits_alone": False,
        "limits_evicted": "",
        "states": {},
        "state": "well",
        "state_reasons": [],
        "failing_names": [],
        "config_refused": [],
        "route_targets": [
            {
                **{"route": "fast", "team": None, "policy": "priority", "state": "up", "more": 0, "fallbacks": []},
                "targets": [
                    {
                        **{"name": "mock/echo", "share": None, "state": "up", "deployments": 1},
                        **{"available": 1, "skipped": None},
                    }
                ],
            }
        ],
        "last_hour": {"minutes": [], "teams": [], "keys": [], "models": []},
        "failed_requests": [],
        "reloads": [],
        "warnings": [],
    }


async def test_the_status_names_who_is_unavailable_and_for_how_long(operator: Operator) -> None:
    breakers = operator.app.front.dispatcher.deployments.breakers
    (target, *_) = operator.app.reloader._table.snapshot.targets()
    now = operator.app.front.dispatcher.now()
    limited = Failure(FailureKind.RATE_LIMITED, "why", 429, retry_after=50)
    breakers.of(target).begin(now, health.AnswerKind.WHOLE).failed(now, limited)
    told = (await operator.ask("GET", "/status")).json()["unavailable"]
    assert isinstance(told, list)
    assert re.fullmatch(rf"{re.escape(target.label)}, (50\.0|49\.\d) s", str(told[0]))


async def test_the_status_names_whose_requests_are_limited_and_why(operator: Operator) -> None:
    dispatcher = operator.app.front.dispatcher
    (target, *_) = operator.app.reloader._table.snapshot.targets()
    queue = dispatcher.deployments.queue(target)
    await queue.take("a")
    queue.limit.lost(FailureKind.RATE_LIMITED, dispatcher.now(), 0.0, 50)
    told = (await operator.ask("GET", "/status")).json()["limited"]
    why = "learned after rate_limited 0 s ago"
    assert told == [f"{target.label}, 45 at once ({why}), 1 in flight, 0 waiting"]


async def test_a_good_table_is_taken(operator: Operator) -> None:
    operator.path.write_text(TABLE.replace("mock/echo", "mock/other"), encoding="utf-8")
    answer = await operator.ask("POST", "/-/reload")
    assert (answer.status, answer.json()["result"]) == (200, "reloaded")
    status = (await operator.ask("GET", "/status")).json()
    assert status["table"] == answer.json()["digest"]
    assert status["deployments"] == ["mock/*/default", "mock/other/default"]


async def test_a_taken_setting_that_needs_a_restart_is_told_in_answer_status_and_page(operator: Operator) -> None:
    operator.path.write_text(f"{TABLE}server: {{drain_grace: 3s}}\n", encoding="utf-8")
    answer = await operator.ask("POST", "/-/reload")
    assert (answer.status, answer.json()["needs_restart"]) == (200, ["server.drain_grace"])
    past = (await operator.ask("GET", "/status")).json()["reloads"]
    assert "'changes': ['server.drain_grace changed (needs a restart)']" in str(past)
    assert b"server.drain_grace changed (needs a restart)" in (await operator.ask("GET", "/")).body
    operator.path.write_text(TABLE, encoding="utf-8")
    assert "needs_restart" not in (await operator.ask("POST", "/-/reload")).json()


async def test_a_bad_table_is_refused_with_its_places_and_the_old_one_stays(operator: Operator) -> None:
    before = (await operator.ask("GET", "/status")).json()["table"]
    operator.path.write_text("version: 1\nvendors: {v: {profile: nothing}}\nmodels: {v/m: {}}\n", encoding="utf-8")
    answer = await operator.ask("POST", "/-/reload")
    assert (answer.status, answer.json()["result"]) == (400, "refused")
    assert answer.json()["problems"] == [
        f"{operator.path}:2:24 vendors.v.profile: no profile is called 'nothing'; for a server that speaks OpenAI's "
        "API write profile: openai_compatible"
    ]
    assert answer.json()["digest"] == before
    status = (await operator.ask("GET", "/status")).json()
    assert (status["table"], status["state"]) == (before, "troubled")
    assert status["config_refused"] == answer.json()["problems"]
    page = (await operator.ask("GET", "/")).body.decode()
    assert "▲ Ready, but the config file on disk is refused: a restart would fail." in page
    scrape = (await operator.ask("GET", "/metrics")).body.decode()
    assert 'dragoman_config_reloads_total{result="failure"} 1.0' in scrape
    assert "dragoman_config_last_reload_successful 0.0" in scrape


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/-/reload", 405), ("POST", "/metrics", 405), ("GET", "/nowhere", 404), ("GET", "/v1/models", 404)],
)
async def test_anything_else_is_an_error_in_json(operator: Operator, method: str, path: str, status: int) -> None:
    answer = await operator.ask(method, path)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["server"] == "dragoman"
    assert answer.json()["error"]


async def test_another_method_says_which_is_allowed(operator: Operator) -> None:
    assert (await operator.ask("GET", "/-/reload")).headers["allow"] == "POST"


async def test_a_probe_that_wants_no_body_gets_none(operator: Operator) -> None:
    async with connected(port_of(operator.app.admin_url)) as client:
        await client.send(request("HEAD", "/health/live", None, {"Connection": "close"}))
        status, headers = await client.head()
        assert (status, headers["content-length"]) == (200, "15")
        assert await client.closed() == b""


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"GET /#x HTTP/1.1\r\nHost: localhost\r\n\r\n"]
)
async def test_what_is_no_http_gets_an_error_of_ours_and_no_echo(operator: Operator, data: bytes) -> None:
    answer = await exchange(port_of(operator.app.admin_url), data)
    assert (answer.status, answer.headers["server"]) == (400, "dragoman")
    assert answer.headers["content-type"] == "application/json"
    assert isinstance(answer.json()["error"], str)


async def test_a_fault_of_ours_is_an_error_of_ours(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(metrics: Metrics) -> bytes:
        raise LookupError("secret of ours")

    monkeypatch.setattr(Metrics, "render", broken)
    answer = await operator.ask("GET", "/metrics")
    assert (answer.status, answer.json()) == (500, {"error": "The gateway failed to handle the request."})


PATHS = [("GET", "/"), ("GET", "/metrics"), ("GET", "/status"), ("POST", "/-/reload"), ("GET", "/nowhere")]


@looped(("method", "path"), PATHS)
@looped("given", [None, "", "Bearer", "Bearer wrong", TOKEN, f"bearer {TOKEN}", f"Bearer {TOKEN} ", f"Bearer {TOKEN}x"])
async def test_all_but_health_asks_for_the_token(guarded: Operator, method: str, path: str, given: str | None) -> None:
    answer = await guarded.ask(method, path, None if given is None else {"Authorization": given})
    permitted = given is not None and given.split() in (["Bearer", TOKEN], ["bearer", TOKEN])
    assert (answer.status == 401) is not permitted
    assert TOKEN not in str(answer)
    if not permitted:
        assert answer.json() == {"error": "The admin token is missing or wrong."}


@pytest.mark.parametrize(
    ("method", "path", "status"), [(*each, 200) for each in PATHS[:4]] + [("GET", "/nowhere", 404)]
)
async def test_the_token_opens_everything(guarded: Operator, method: str, path: str, status: int) -> None:
    assert (await guarded.ask(method, path, BEARER)).status == status


async def test_health_needs_no_token(guarded: Operator) -> None:
    for path in ("/health", "/health/live", "/health/ready"):
        assert (await guarded.ask("GET", path)).status == 200


async def test_a_token_of_other_bytes_is_wrong_and_no_fault(guarded: Operator) -> None:
    data = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\xfe\r\n\r\n"
    assert (await exchange(port_of(guarded.app.admin_url), data)).status == 401


async def test_no_completion_is_served_here(operator: Operator) -> None:
    port = port_of(operator.app.admin_url)
    assert (await exchange(port, request("POST", "/v1/completions", ask("mock/echo")))).status == 404


# Limits and usage ---------------------------------------------------------------------------------------------------

TWO_TEAMS = f"""version: 1
vendors: {{mock: {{}}}}
models: {{mock/echo: {{price: {{input: 1, output: 2}}}}}}
teams:
  search:
    keys: [{{hash: "{digest_of("k")}", name: ci, limits: {{requests_per_minute: 2}}}}]
    models: ["*"]
    limits: {{requests_per_minute: 4, tokens_per_day: 1M}}
    budget: {{usd: 500, per: month}}
  data: {{keys: ["{digest_of("d")}"], models: ["*"], limits: {{concurrent: 9}}}}
"""
ECHO = ask("mock/echo", max_tokens=5)


async def as_team(operator: Operator, method: str, path: str, key: str, body: JsonValue = None) -> Answer:
    return await exchange(port_of(operator.app.url), request(method, path, body, {"Authorization": f"Bearer {key}"}))


@pytest.fixture
async def limited(tmp_path: Path) -> AsyncIterator[Operator]:
    """Yield an operator of two teams with limits; one of them has made two requests."""
    async with up(TWO_TEAMS, tmp_path) as made:
        for _ in range(2):
            assert (await as_team(made, "POST", "/v1/completions", "k", ECHO)).status == 200
        yield made


def by_limit(answer: Answer) -> dict[str, float]:
    assert answer.status == 200
    found = said(answer)["limits"]
    return {f"{each['scope']} {each['kind']} {each['unit']}": each["used"] for each in found}


async def test_the_limits_show_what_is_used_and_what_nobody_has_used(limited: Operator) -> None:
    found = by_limit(await limited.ask("GET", "/limits"))
    assert found["team search rate requests"] == 2
    assert found["key search/ci rate requests"] == 2
    assert found["team search quota tokens"]
    assert found["team data concurrent requests"] == 0
    assert 0 < found["team search budget usd"] < 0.001
    assert set(by_limit(await limited.ask("GET", "/limits?team=data"))) == {"team data concurrent requests"}
    assert by_limit(await limited.ask("GET", "/limits?team=nobody")) == {}
    lines = said(await limited.ask("GET", "/status"))["limits"]
    assert "team search: 2 of 4 requests per minute (50%)" in lines


async def usage_of(operator: Operator, count: int, path: str, key: str = "k") -> Answer:
    """Return the public listener's usage response, once `requests` of the key's team are loaded."""
    while True:
        answer = await as_team(operator, "GET", path, key)
        total = said(answer).get("total")
        if isinstance(total, dict) and total["requests"] >= count:
            return answer
        await asyncio.sleep(0.05)


async def test_a_team_sees_its_own_usage_and_no_limit_counts_that(limited: Operator) -> None:
    answer = await usage_of(limited, 2, "/usage?by=team,model")
    usage = said(answer)["usage"]
    assert {each["team"] for each in usage} == {"search"}
    assert answer.headers["x-request-id"]
    assert (await as_team(limited, "GET", "/v1/usage?team=search", "k")).status == 200
    other = await as_team(limited, "GET", "/v1/usage?team=search", "d")
    assert (other.status, said(other)["error"]["type"]) == (403, "permission_error")
    assert by_limit(await limited.ask("GET", "/limits"))["team search rate requests"] in {1, 2}
    theirs = said(await as_team(limited, "GET", "/usage", "d"))["usage"]
    assert all(each["team"] == "data" for each in theirs)


async def test_the_operator_sees_the_usage_of_all(limited: Operator) -> None:
    await usage_of(limited, 2, "/usage")
    answer = await limited.ask("GET", "/usage?by=team")
    usage = said(answer)["usage"]
    assert "search" in {each["team"] for each in usage}
    refused = await limited.ask("GET", "/usage?by=colour")
    assert refused.status == 400
    assert "colour" in str(said(refused)["error"])


@pytest.mark.parametrize("key", ["wrong", ""])
async def test_usage_needs_a_key(limited: Operator, key: str) -> None:
    answer = await as_team(limited, "GET", "/usage", key)
    assert (answer.status, said(answer)["error"]["code"]) == (401, "invalid_api_key")


async def test_a_table_without_teams_has_no_usage_of_one_and_no_ledger(tmp_path: Path) -> None:
    async with up("version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {}}\n", tmp_path) as made:
        own = await as_team(made, "GET", "/v1/usage", "any")
        assert (own.status, said(own)["error"]["code"]) == (404, "not_found")
        every = await made.ask("GET", "/usage")
        assert every.status == 404
        assert "has no ledger" in str(said(every)["error"])
        assert said(await made.ask("GET", "/status"))["ledger"] == "none"
