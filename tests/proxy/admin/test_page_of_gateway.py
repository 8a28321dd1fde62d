"""The operator's page and status of a running gateway: their content, their readers, and the secrets they never
show.
"""

import asyncio
from base64 import b64encode
from pathlib import Path
from typing import cast

import pytest

from providers.failure import Failure, FailureKind
from proxy.admin import admin_endpoints
from proxy.admin.admin_endpoints import Admin
from proxy.admin.page import render
from proxy.admin.page_assets import POLICY
from proxy.admin.page_model import PageQuery, StatusPage
from proxy.admin.status import GatewayView, StatusSource
from proxy.deployment_health import circuit_breaker as health
from tests.proxy.admin.kit import view
from tests.proxy.admin.operators import BEARER, TABLE, TOKEN, WITH_TOKEN, Operator, said, up
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.whole_gateway import port_of
from tests.support.waiting import until


@pytest.mark.parametrize("path", ["/", "/status", "/?q=echo&vendor=mock&rows=all&q=x&unknown=%ff"])
async def test_a_browser_gets_the_status_as_a_page(operator: Operator, path: str) -> None:
    answer = await operator.ask("GET", path, {"Accept": "text/html,*/*;q=0.8"})
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["server"] == "dragoman"
    assert b"mock/<wbr>echo/<wbr>default</th>" in answer.body
    assert b"mock/<wbr>*/<wbr>default</th>" in answer.body or b"echo" in path.encode()


async def completion(operator: Operator, model: str, **headers: str) -> Answer:
    port = port_of(operator.app.url)
    return await exchange(
        port, request("POST", "/v1/completions", ask(model), {"Authorization": "Bearer k", **headers})
    )


async def test_the_page_shows_what_happened_and_hostile_names_as_text(operator: Operator) -> None:
    for _ in range(3):
        assert (await completion(operator, "mock/echo")).status == 200
    failed = await completion(operator, "nobody/<script>alert(1)</script>", **{"x-request-id": "the-request-of-mine"})
    assert failed.status == 404
    page = (await operator.ask("GET", "/")).body.decode()
    assert "the-request-of-mine" in page
    assert "nobody/<wbr>&lt;script&gt;alert(1)&lt;/<wbr>script&gt;" in page
    assert "<script>alert" not in page
    status = said(await operator.ask("GET", "/status"))
    whole, echo = status["recent"]["whole"], status["recent"]["deployments"]["mock/echo/default"]
    assert (whole["requests"], whole["refused"], echo["requests"]) == (4, 1, 3)
    assert 0 < whole["duration_p50_s"] <= whole["duration_p95_s"]
    hour = status["last_hour"]
    assert sum(minute["outcomes"].get("ok", 0) for minute in hour["minutes"]) == 3
    assert [(each["name"], each["requests"]) for each in hour["teams"]] == [("search", 3)]
    assert [each["name"] for each in hour["models"]] == ["mock/echo"]
    assert "succeeded 3 (75.0%)" in page
    (kept,) = status["failed_requests"]
    assert (kept["request_id"], kept["team"], kept["status"]) == ("the-request-of-mine", "search", 404)


async def test_a_streamed_answer_counts_with_its_first_token(operator: Operator) -> None:
    port = port_of(operator.app.url)
    body = ask("mock/echo", stream=True)
    assert (await exchange(port, request("POST", "/v1/completions", body, {"Authorization": "Bearer k"}))).status == 200
    echo = said(await operator.ask("GET", "/status"))["recent"]["deployments"]["mock/echo/default"]
    assert 0 < echo["first_token_p50_s"] <= echo["duration_p95_s"]
    assert echo["tokens_per_second"] > 0


async def test_reloads_are_shown_with_what_changed_and_without_values(operator: Operator) -> None:
    changed = TABLE.replace("routes: {fast: mock/echo}", "routes: {fast: mock/echo, slow: mock/echo}")
    operator.path.write_text(changed + "server: {admin: {token: a-secret-canary}}\n", encoding="utf-8")
    assert (await operator.ask("POST", "/-/reload")).status == 200
    operator.path.write_text("version: 1\nmodels: {v/m: {}}\n", encoding="utf-8")
    assert (await operator.ask("POST", "/-/reload")).status == 400
    bad, good = said(await operator.ask("GET", "/status"))["reloads"]
    assert (good["result"], good["changes"]) == (
        "taken",
        ["server.admin changed (needs a restart)", "route slow added"],
    )
    assert bad["result"] == "refused"
    assert "no vendor named v" in bad["problems"][0]
    page = (await operator.ask("GET", "/")).body
    assert b"route slow added" in page
    assert b"a-secret-canary" not in page


async def test_the_warnings_of_the_table_in_force_are_shown(tmp_path: Path) -> None:
    async with up(WITH_TOKEN, tmp_path) as made:
        (warning,) = said(await made.ask("GET", "/status", BEARER))["warnings"]
        page = (await made.ask("GET", "/", BEARER)).body.decode()
    assert "secret is written in the config file itself" in warning
    assert "secret is written in the config file itself" in page
    assert TOKEN not in page


async def test_the_page_names_a_deployment_whose_breaker_is_open(operator: Operator) -> None:
    dispatcher = operator.app.front.dispatcher
    one, other = operator.app.reloader._table.snapshot.targets()
    now = dispatcher.now()
    breakers = dispatcher.deployments.breakers
    breakers.of(one).begin(now, health.AnswerKind.WHOLE).failed(now, Failure(FailureKind.AUTH, "why", 401))
    asked = Failure(FailureKind.RATE_LIMITED, "why", 429, retry_after=50)
    breakers.of(other).begin(now, health.AnswerKind.WHOLE).failed(now, asked)
    states = said(await operator.ask("GET", "/status"))["states"]
    assert states == {one.label: "open", other.label: "cooling"}
    page = (await operator.ask("GET", "/")).body.decode()
    assert "✕ circuit open" in page
    assert "■ cooldown" in page


@pytest.mark.parametrize("user", ["", "operator"])
async def test_a_browser_is_asked_for_the_token_and_gives_it_as_a_password(guarded: Operator, user: str) -> None:
    refused = await guarded.ask("GET", "/")
    assert refused.status == 401
    assert "Basic realm=" in refused.headers["www-authenticate"]
    assert TOKEN.encode() not in refused.body
    basic = "Basic " + b64encode(f"{user}:{TOKEN}".encode()).decode()
    assert (await guarded.ask("GET", "/", {"Authorization": basic})).status == 200
    assert (await guarded.ask("GET", f"/?token={TOKEN}")).status == 401


async def test_another_site_s_page_cannot_reload_with_the_browser_s_password(guarded: Operator) -> None:
    basic = "Basic " + b64encode(f":{TOKEN}".encode()).decode()
    for page in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await guarded.ask("POST", "/-/reload", {"Authorization": basic, **page})
        assert answer.status == 403
    assert said(await guarded.ask("GET", "/status", BEARER))["reloads"] == []


async def test_pages_asked_for_at_once_are_drawn_together(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[PageQuery] = []

    def noted(page: StatusPage) -> str:
        drawn.append(page.query)
        return render(page)

    monkeypatch.setattr(admin_endpoints, "render", noted)
    asked = [operator.ask("GET", f"/?q={text}", {"Accept": "text/html"}) for text in ["echo"] * 20 + ["other"] * 20]
    answers = await asyncio.gather(*asked)
    assert {answer.status for answer in answers} == {200}
    assert len(drawn) < 10
    assert {query.text for query in drawn} == {"echo", "other"}


class Unhurried:
    """A source whose first view waits until it is released."""

    def __init__(self) -> None:
        self.asked = 0
        self.go_on: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def view(self) -> GatewayView:
        self.asked += 1
        await asyncio.shield(self.go_on)
        return view()


async def test_a_visitor_who_leaves_costs_the_others_nothing(operator: Operator) -> None:
    admin = Admin(cast(StatusSource, source := Unhurried()), operator.app.reloader, None)
    first, second, third = (asyncio.ensure_future(admin._shared_page(PageQuery())) for _ in range(3))
    await until(lambda: source.asked == 1 and len(admin._renderings) == 1)
    second.cancel()
    source.go_on.set_result(None)
    pages = await asyncio.gather(first, second, third, return_exceptions=True)
    assert isinstance(pages[1], asyncio.CancelledError)
    assert [isinstance(page, bytes) for page in (pages[0], pages[2])] == [True, True]
    assert admin._renderings == {}
