"""Which requests are equal, and which are never stored."""

from dataclasses import replace

from providers.json_types import JsonObject
from providers.unified_request import (
    ChatPrompt,
    LogprobsWanted,
    NativeApi,
    NativeRequest,
    Operation,
    Params,
    StreamOptions,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
)
from proxy.response_cache.cache_key import request_key, why_not
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for
from proxy.routing.snapshot import Snapshot, Team
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.looped import looped

SECRET = b"s" * 32
VENDOR = "{profile: openai_compatible, base_url: 'http://127.0.0.1:1/v1', allow_private: true}"
TABLE = f"""
vendors: {{v: {VENDOR}}}
models:
  v/m: {{cache: {{}}}}
  v/all: {{cache: {{scope: table}}}}
teams:
  a: {{keys: ["{digest_of("a")}"], models: [v/m, v/all]}}
  b: {{keys: ["{digest_of("b")}"], models: [v/m, v/all]}}
  c: {{keys: ["{digest_of("c")}"], models: [v/m, v/all], on_unsupported: drop}}
"""
MESSAGES: tuple[JsonObject, ...] = ({"role": "user", "content": "hi"},)
CHAT = UnifiedRequest(Operation.CHAT, "v/m", ChatPrompt(MESSAGES), {"temperature": 0})


def key(
    request: UnifiedRequest = CHAT, model: str = "v/m", team: str = "a", surface: str = "openai", table: str = TABLE
) -> str:
    made: Snapshot = snapshot(table)
    who: Team = made.teams[team]
    return request_key(SECRET, "1", surface, plan_for(made, who, model, surface, IDLE), who, request)


def with_params(**params: object) -> UnifiedRequest:
    made: Params = {"temperature": 0, **params}  # type: ignore[typeddict-item]
    return replace(CHAT, params=made)


def test_odd_texts_and_numbers_have_keys_of_their_own() -> None:
    odd = [with_params(user=text) for text in ("\ud800", "\ud801")] + [with_params(seed=2**70 + n) for n in (0, 1)]
    assert len({key(each) for each in odd}) == len(odd)


def test_equal_requests_have_one_key_whatever_the_process() -> None:
    assert key() == key()
    assert len(key()) == 48


OTHERS = {
    "a seed": with_params(seed=1),
    "another seed": with_params(seed=2),
    "n": with_params(n=2),
    "logprobs": with_params(logprobs=LogprobsWanted(0, "content")),
    "a user": with_params(user="u"),
    "a number of another kind": with_params(temperature=0.0),
    "a stream": replace(CHAT, stream=True),
    "a prompt": replace(CHAT, prompt=ChatPrompt(({"role": "user", "content": "hi "},))),
    "members in another order": replace(CHAT, prompt=ChatPrompt(({"content": "hi", "role": "user"},))),
    "a text": replace(CHAT, prompt=TextPrompt(("1",))),
    "tokens": replace(CHAT, prompt=TokenPrompt(((1,),))),
    "unknown fields": replace(CHAT, unknown={"min_tokens": 1}),
    "extra params": replace(CHAT, extra_params={"min_tokens": 1}),
    "extra headers": replace(CHAT, extra_headers={"x-a": "1"}),
    "defaults of the surface": replace(CHAT, injected=frozenset({"temperature"})),
    "a native body": replace(CHAT, native=NativeRequest(NativeApi.MESSAGES, {"a": 1})),
    "native headers": replace(CHAT, native=NativeRequest(NativeApi.MESSAGES, {"a": 1}, {"anthropic-beta": "x"})),
}


def test_all_that_may_change_the_answer_changes_the_key() -> None:
    keys = [key(), *(key(each) for each in OTHERS.values())]
    assert len(set(keys)) == len(keys)


def test_the_key_is_of_the_surface_the_name_the_team_and_the_table() -> None:
    tables = {
        "upstream model": TABLE.replace("v/m: {cache: {}}", "v/m: {cache: {}, upstream_model: x}"),
        "headers": TABLE.replace("allow_private: true}", "allow_private: true, headers: {x-a: '1'}}", 1),
        "account": TABLE.replace("allow_private: true}", "allow_private: true, api_key: k}", 1),
        "a deployment": TABLE.replace("v/m: {cache: {}}", "v/m: {cache: {}, deployments: {x: {}, y: {}}}"),
    }
    keys = [key(), key(surface="scale"), key(model="v/all"), key(team="b"), *(key(table=it) for it in tables.values())]
    assert len(set(keys)) == len(keys)


def test_what_changes_no_answer_changes_no_key() -> None:
    assert key(replace(CHAT, timeout=3.0)) == key()
    streamed = replace(CHAT, stream=True)
    assert key(replace(streamed, stream_options=StreamOptions(include_usage=True))) == key(streamed)
    assert key(table=TABLE + "server: {port: 8081}\n") == key()


def test_teams_share_where_the_scope_is_the_table_and_their_rights_are_the_same() -> None:
    assert key(model="v/all", team="a") == key(model="v/all", team="b") != key(model="v/all", team="c")


def with_part(part: JsonObject) -> UnifiedRequest:
    return replace(CHAT, prompt=ChatPrompt(({"role": "user", "content": [part]},)))


@looped(
    ("request_", "why"),
    [
        (CHAT, None),
        (with_params(tools=[{"type": "function", "function": {"name": "f"}}]), None),
        (with_params(tools=[{"type": "web_search"}]), "a tool"),
        (with_params(tools=[{"googleSearch": {}}]), "a tool"),
        (with_params(web_search_options={}), "a tool"),
        (with_params(store=True), "stored"),
        (with_params(store=False), None),
        (with_params(audio={"voice": "x"}), "expires"),
        (with_part({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}), None),
        (with_part({"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}), "media"),
        (with_part({"type": "file", "file": {"file_id": "file-1"}}), "media"),
        (with_part({"type": "text", "text": "https://a.example/x.png"}), None),
        (with_params(images=(("https://a.example/x.png",),)), "media"),
        (with_params(images=(("data:image/png;base64,AA",),)), None),
        (replace(CHAT, native=NativeRequest(NativeApi.MESSAGES, {"mcp_servers": [{}]})), "kept elsewhere"),
        (
            replace(CHAT, native=NativeRequest(NativeApi.MESSAGES, {"tools": [{"type": "web_search_20250305"}]})),
            "a tool",
        ),
        (replace(CHAT, native=NativeRequest(NativeApi.MESSAGES, {"tools": [{"name": "f"}]})), None),
    ],
)
def test_answers_that_may_change_behind_the_request_are_not_kept(request_: UnifiedRequest, why: str | None) -> None:
    found = why_not(request_)
    assert found is None if why is None else why in (found or "")
