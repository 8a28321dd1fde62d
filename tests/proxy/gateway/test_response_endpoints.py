"""The endpoints of stored responses: their results, their access rules, and the errors that name a field."""

from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.proxy.conversations.test_response_entries import item, response
from tests.proxy.conversations.test_stored_responses import conversation
from tests.proxy.kit.gateway_rig import AUTH, Rig, rig
from tests.proxy.kit.raw_client import Answer, exchange, request

pytestmark = pytest.mark.smoke


OWNER = "team search"
OTHER_TEAM = {"Authorization": "Bearer ads"}


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    """Yield a gateway with a conversation of three turns that the team of AUTH has stored."""
    async with rig() as made:
        await conversation(made.features.responses, OWNER, 3)
        yield made


async def call(made: Rig, method: str, path: str, headers: dict[str, str] | None = None) -> Answer:
    return await exchange(made.port, request(method, f"/v1/responses{path}", None, headers or AUTH))


def body(answer: Answer, status: int = 200) -> JsonObject:
    assert answer.status == status, answer.body
    value = orjson.loads(answer.body)
    assert isinstance(value, dict)
    return value


def error(answer: Answer, status: int) -> JsonObject:
    found = body(answer, status)["error"]
    assert isinstance(found, dict)
    return found


def ids(listed: JsonObject) -> list[object]:
    data = listed["data"]
    assert isinstance(data, list)
    return [each["id"] for each in data if isinstance(each, dict)]


async def test_a_response_is_given_out_as_it_was_answered(served: Rig) -> None:
    answer = await call(served, "GET", "/resp_1")
    assert body(answer) == {"id": "resp_1", "object": "response", "output": [item("out_1")]}
    assert "x-dragoman-dropped" not in answer.headers


async def test_what_was_not_included_then_is_not_later_and_that_is_said(served: Rig) -> None:
    for path in ("/resp_1?include[]=reasoning.encrypted_content", "/resp_1/input_items?include=x"):
        answer = await call(served, "GET", path)
        body(answer)
        assert answer.headers["x-dragoman-dropped"] == "include"
    assert served.records[-1].dropped == ("include",)


async def test_a_stored_response_is_not_streamed_again(served: Rig) -> None:
    found = error(await call(served, "GET", "/resp_1?stream=true&starting_after=3"), 400)
    assert (found["code"], found["param"]) == ("unsupported_parameter", "stream")
    assert body(await call(served, "GET", "/resp_1?stream=false"))["id"] == "resp_1"


async def test_a_deleted_response_is_gone(served: Rig) -> None:
    assert body(await call(served, "DELETE", "/resp_1")) == {"id": "resp_1", "object": "response", "deleted": True}
    for method, path in (("GET", "/resp_1"), ("DELETE", "/resp_1"), ("GET", "/resp_1/input_items")):
        assert error(await call(served, method, path), 404)["code"] == "not_found"
    assert body(await call(served, "GET", "/resp_0"))["id"] == "resp_0"


@pytest.mark.parametrize("path", ["/resp_0", "/resp_0/input_items", "/in_0", "/i:in_0", "/r:resp_0", "/%2e%2e", "/*"])
async def test_no_id_shows_another_team_s_response(served: Rig, path: str) -> None:
    for method in ("GET", "DELETE"):
        answer = await call(served, method, path, OTHER_TEAM)
        assert answer.status in (404, 405)
    assert body(await call(served, "GET", "/resp_0"))["id"] == "resp_0"


async def test_without_a_key_nothing_is_said_of_any_id(served: Rig) -> None:
    for name in ("resp_0", "absent"):
        found = error(await call(served, "GET", f"/{name}", {"Authorization": "Bearer wrong"}), 401)
        assert found["code"] == "invalid_api_key"


async def test_input_items_are_those_of_the_whole_conversation_the_latest_first(served: Rig) -> None:
    listed = body(await call(served, "GET", "/resp_2/input_items"))
    assert ids(listed) == ["in_2", "out_1", "in_1", "out_0", "in_0"]
    assert {name: listed[name] for name in listed if name != "data"} == {
        "object": "list",
        "first_id": "in_2",
        "last_id": "in_0",
        "has_more": False,
    }
    oldest_first = body(await call(served, "GET", "/resp_2/input_items?order=asc"))
    assert ids(oldest_first) == ["in_0", "out_0", "in_1", "out_1", "in_2"]


async def test_input_items_come_in_pages(served: Rig) -> None:
    seen: list[object] = []
    path, more = "/resp_2/input_items?limit=2", True
    while more:
        page = body(await call(served, "GET", path))
        seen += ids(page)
        more, path = page["has_more"] is True, f"/resp_2/input_items?limit=2&after={page['last_id']}"
    assert seen == ["in_2", "out_1", "in_1", "out_0", "in_0"]
    empty = body(await call(served, "GET", "/resp_2/input_items?after=in_0"))
    assert empty == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=-1", "limit"),
        ("limit=1e1", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("limit=", "limit"),
        ("order=up", "order"),
        ("after=absent", "after"),
        ("before=in_0", "before"),
    ],
)
async def test_a_list_that_cannot_be_had_is_refused_by_name(served: Rig, query: str, param: str) -> None:
    assert error(await call(served, "GET", f"/resp_2/input_items?{query}"), 400)["param"] == param


async def test_a_list_whose_conversation_has_lost_a_response_names_it(served: Rig) -> None:
    await served.features.responses.delete(OWNER, "resp_0")
    found = error(await call(served, "GET", "/resp_2/input_items"), 400)
    assert (found["code"], "'resp_0'" in str(found["message"])) == ("previous_response_not_found", True)


@pytest.mark.parametrize("path", ["/resp_0/cancel", "/compact"])
async def test_what_is_not_served_is_refused_by_name(served: Rig, path: str) -> None:
    found = error(await call(served, "POST", path), 404)
    assert path.rpartition("/")[2] in str(found["message"])


async def test_the_tokens_of_a_prompt_are_counted_with_what_it_continues(served: Rig) -> None:
    async def counted(**fields: JsonValue) -> int:
        answer = await served.post("/v1/responses/input_tokens", {"model": "v/m", **fields})
        found = body(answer)
        assert answer.headers["x-dragoman-emulated"] == "input_tokens"
        assert found["object"] == "response.input_tokens"
        assert isinstance(found["input_tokens"], int)
        return found["input_tokens"]

    said = item("m", role="user", content="x" * 400)
    await served.features.responses.keep(OWNER, response("resp_9", said=(said,)))
    alone = await counted(input="hello there")
    assert 0 < alone < await counted(input="hello there", previous_response_id="resp_9")
    assert served.vendor.requests == []
    refused = await served.post("/v1/responses/input_tokens", {"model": "v/m", "input": 7})
    assert error(refused, 400)["param"] == "input"
    unknown = await served.post("/v1/responses/input_tokens", {"model": "absent", "input": "x"})
    assert error(unknown, 404)["code"] == "model_not_found"


@pytest.mark.parametrize(("method", "path"), [("POST", "/resp_0"), ("PUT", "/resp_0"), ("GET", "/resp_0/cancel")])
async def test_another_method_is_refused(served: Rig, method: str, path: str) -> None:
    assert error(await call(served, method, path), 405)["code"] == "method_not_allowed"


async def test_a_long_conversation_is_listed_off_the_event_loop(served: Rig) -> None:
    said = tuple(item(f"m{number}", text="x" * 400) for number in range(1000))
    await served.features.responses.keep(OWNER, response("long", said=said))
    listed = body(await call(served, "GET", "/long/input_items?limit=100&after=m500"))
    assert ids(listed) == [f"m{number}" for number in range(499, 399, -1)]
    assert listed["has_more"] is True


async def test_a_large_response_comes_whole(served: Rig) -> None:
    await served.features.responses.keep(OWNER, response("long", out=(item("m", text="x" * 2_000_000),)))
    assert len((await call(served, "GET", "/long")).body) > 2_000_000


async def test_each_call_is_recorded_for_its_team(served: Rig) -> None:
    await call(served, "GET", "/resp_1")
    await call(served, "GET", "/absent")
    one, other = await served.finished(2)
    assert (one.team, one.status, one.outcome, one.model) == ("search", 200, "ok", "other")
    assert (other.status, other.code, other.outcome) == (404, "not_found", "client_error")
