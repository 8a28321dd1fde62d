"""Paths and names reveal nothing: an escaped slash opens no path, and no response shows a team the names of others."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proxy.errors import GatewayError
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig, ask, rig
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import completion

OTHER = "dk-of-the-other-team"
TABLE = f"""
vendors:
  v: {{profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
  w: {{profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
  fireworks: {{api_key: k}}
models:
  v/m: {{}}
  v/two: {{deployments: {{eu: {{}}, us: {{}}}}}}
  v/secret-project: {{}}
  v/behind: {{}}
  v/last-resort: {{}}
  w/*: {{}}
  fireworks/accounts/x/models/y: {{}}
routes:
  fast: {{targets: [v/behind], fallbacks: {{context_window: [v/last-resort]}}}}
  merger: {{targets: [v/m]}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: [v/m, v/two/eu, fast, fireworks/accounts/x/models/y]
  ads:
    keys: ["{digest_of(OTHER)}"]
    models: ["*"]
    routes: {{plans: v/m}}
"""
HIDDEN = ("v/secret-project", "v/secret-project/default", "v/two/us", "merger", "w/anything", "w/any/thing", "plans")
"""Names that other teams may use, and this team must not learn."""

NOWHERE = ("v/public-project", "v/public-project/default", "v/two/ap", "margin", "x/anything", "x/any/thing", "plants")
"""Similar names that the configuration does not contain."""

KNOWN = ("v/two", "v/behind", "v/behind/default", "v/last-resort")
"""Names that the team's own configuration shows."""


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    async with rig(TABLE) as made:
        made.vendor.default = json_answer(200, completion("hello", "m"))
        yield made


def without(answer: Answer, name: str) -> tuple[object, ...]:
    passing = ("date", "x-request-id", "content-length")
    headers = {key: value for key, value in answer.headers.items() if key not in passing}
    return answer.status, headers, answer.body.replace(name.encode(), b"NAME")


@pytest.mark.parametrize(("hidden", "nowhere"), list(zip(HIDDEN, NOWHERE, strict=True)))
async def test_threat_18_a_name_of_others_and_one_of_nobody_look_the_same(
    served: Rig, hidden: str, nowhere: str
) -> None:
    for surface in ("/v1/completions", "/v5/completions", "/inference/v1/completions"):
        theirs, none = [await served.post(surface, ask(name)) for name in (hidden, nowhere)]
        assert without(theirs, hidden) == without(none, nowhere)
        assert (theirs.status, theirs.code) == (404, "model_not_found")
    shown, none = [
        await exchange(served.port, request("GET", f"/v1/models/{name}", None, AUTH)) for name in (hidden, nowhere)
    ]
    assert without(shown, hidden) == without(none, nowhere)
    assert served.vendor.requests == []


async def test_the_log_tells_the_operator_what_the_client_is_not_told(served: Rig) -> None:
    await served.post("/v1/completions", ask("v/secret-project"))
    await served.post("/v1/completions", ask("v/public-project"))
    records = await served.finished(2)
    assert [(record.code, record.outcome, record.status) for record in records] == [
        ("model_not_allowed", "denied", 404),
        ("model_not_found", "client_error", 404),
    ]


@pytest.mark.parametrize("name", KNOWN)
async def test_a_name_that_the_team_s_own_tell_it_of_is_forbidden_and_not_missing(served: Rig, name: str) -> None:
    answer = await served.post("/v1/completions", ask(name))
    assert (answer.status, answer.code) == (403, "model_not_allowed")


async def test_threat_18_no_hint_and_no_list_names_what_others_have(served: Rig) -> None:
    listed = await exchange(served.port, request("GET", "/v1/models", None, AUTH))
    assert b"v/two/eu" in listed.body
    hints = [await served.post("/v1/completions", ask(f"{name}s")) for name in HIDDEN]
    for answer in (listed, *hints):
        # A response repeats the requested name, which is one letter longer here.
        found = answer.body.decode().replace("'v/secret-projects'", "").replace("'w/anythings'", "")
        assert [name for name in HIDDEN if f"'{name}'" in found or f'"{name}"' in found] == []


def test_threat_18_the_work_of_a_refusal_does_not_tell_either(monkeypatch: pytest.MonkeyPatch) -> None:
    table = snapshot(TABLE.replace("PORT", "1"))
    compared: list[str] = []

    def close(name: str, *rest: object) -> list[str]:
        compared.append(name)
        return []

    monkeypatch.setattr("proxy.routing.resolve_model.get_close_matches", close)
    for name in (*HIDDEN, *NOWHERE):
        with pytest.raises(GatewayError):
            plan_for(table, table.teams["search"], name, "openai", IDLE)
    assert compared == [*HIDDEN, *NOWHERE]


# Paths ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/v1%2fcompletions",
        "/v1%2Fcompletions",
        "/v1/chat%2Fcompletions",
        "/inference%2Fv1/completions",
        "%2Fv1/completions",
        "/v1/completions%2F",
        "/v5%2fcompletions",
        "/v1/completions%252F",
    ],
)
async def test_threat_18_an_escaped_slash_opens_no_path_that_generates(served: Rig, path: str) -> None:
    answer = await served.post(path, ask())
    assert answer.status in (400, 404)
    assert served.vendor.requests == []


@pytest.mark.parametrize(
    "path", ["/v1%2Fmodels", "/v1%2fmodels/v/m", "/health%2Flive", "/health%2fready", "/v1/models%2Fv/m"]
)
async def test_threat_18_nor_one_that_shows_something(served: Rig, path: str) -> None:
    answer = await exchange(served.port, request("GET", path, None, AUTH))
    assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/models/v/m", "v/m"),
        ("/v1/models/v%2Fm", "v/m"),
        ("/v1/models/v%2fm", "v/m"),
        ("/models/v%2Fm", "v/m"),
        ("/v1/models/fireworks%2Faccounts%2Fx%2Fmodels%2Fy", "fireworks/accounts/x/models/y"),
        ("/v1/%6dodels/v/m", "v/m"),
    ],
)
async def test_a_model_s_name_may_be_escaped_as_the_sdks_do_it(served: Rig, path: str, name: str) -> None:
    # openai 3.54 sends `models.retrieve("v/m")` as /models/v%2Fm, openai 1.x as /models/v/m.
    answer = await exchange(served.port, request("GET", path, None, AUTH))
    assert (answer.status, answer.json()["id"]) == (200, name)


async def test_threat_18_an_escape_within_an_escape_stays_one(served: Rig) -> None:
    answer = await exchange(served.port, request("GET", "/v1/models/v%252Fm", None, AUTH))
    assert (answer.status, answer.code) == (404, "model_not_found")
    assert "'v%2Fm'" in answer.message
