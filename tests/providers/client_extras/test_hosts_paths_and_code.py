"""Names and values that contain hosts, paths or code, and harmless ones that only look like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.client_extras.hosts_paths_and_code import MOST_STEPS, Search, find_reserved, is_inline, is_reserved
from providers.json_types import JsonValue
from providers.request_fields import PROTECTED_PARAMS
from tests.support.looped import looped
from tests.support.nightly import some


def place(name: str, value: JsonValue, *allowed: str) -> str | None:
    found = Search(allowed).find(name, value)
    return None if found is None else ".".join(map(str, (name, *found.place)))


@looped("name", sorted(PROTECTED_PARAMS))
def test_what_the_gateway_decides_is_reserved_in_any_case(name: str) -> None:
    assert is_reserved(name)
    assert is_reserved(name.upper())


def test_no_depth_hides_a_reserved_name_and_a_schema_may_describe_one() -> None:
    assert find_reserved("a", [{"b": {"api_key": 1}}]) == (0, "b", "api_key")
    assert find_reserved("a", {"properties": {"api_key": {"default": {"api_key": 1}}}}) is None
    assert find_reserved("properties", {"api_key": {"type": "string"}}) is None


@looped(
    "name",
    ["remote_host", "remoteHost", "REMOTE_HOST", "remote-host", "remote.host", "remote_ho\u017ft", "bootstrap_port",
     "chat_template", "chatTemplate", "TEMPLATE", "instruction_template_str", "lora_path", "loraPath", "lora_request",
     "logits_processors", "custom_logit_processor", "kv_transfer_params", "mcp_servers", "tool_server", "baseurl",
     "baseURL", "file", "image_url", "http_worker_ipc", "webhook", "draft_model", "adapters", "adapter_id",
     "prompt_embeds"],
)  # fmt: skip
def test_a_name_says_what_it_is_in_any_spelling(name: str) -> None:
    values: list[JsonValue] = [None, 1, "x", [], {}]
    for value in values:
        assert place(name, value) == name
    assert place("options", [{"deep": {name: 1}}]) == f"options.0.deep.{name}"
    assert place(name, {"url": "http://h/"}, name) is None
    assert place("options", {name: {"url": "http://h/"}}, name) is None


@looped(
    "value",
    ["http://h", "HTTPS://h/x", " ftp://h", "nixl+tcp://h:1", "file:///etc/passwd", "file:/etc/passwd", "gs://b/x",
     "s3://b", "/etc/passwd", "/x.png", "~/.ssh/id_rsa", "./x", "../../x", "C:\\x", "c:/x", "\\\\host\\share",
     "10.0.0.9", "10.0.0.9:80", "redis.svc:6379", "localhost:8000", "[::1]:80", "a_10.0.0.9:21001_b", "v.example:1"],
)  # fmt: skip
def test_a_value_that_is_a_place_is_found_under_any_name(value: str) -> None:
    assert place("x", value) == "x"
    assert place("x", {"y": [1, [value]]}) == "x.y.1.0"


@looped(
    "value",
    ["", "x", "a/b", "/no_think", "/", "http://", "https", "team:1234", "12:30", "1.5:1", "v1.2.3", "1.2.3", "a.b",
     "see http://h/x for more", "10 of 10.0.0.9", "root ::= \"a\"", "{{x}}", "data:image/png;base64,AAAA", "a b/c d",
     "\u00e4\u00f6\u00fc: x", "x" * 100_000, "/x" * 1000],
)  # fmt: skip
def test_other_texts_are_no_places(value: str) -> None:
    assert place("x", value) is None


def test_texts_and_schemas_are_not_looked_into() -> None:
    schema: JsonValue = {"$schema": "https://json-schema.org/x", "properties": {"url": {"pattern": "/a/b"}}}
    for name in ("json_schema", "schema", "documents", "grammar", "bad_words", "input_extra"):
        assert place(name, [{"url": "http://h/", "schema": schema}]) is None
    assert place("functions", [{"name": "/a/b", "description": "http://h/", "parameters": schema}]) is None


def test_variables_of_a_template_may_have_any_name_but_the_template_s() -> None:
    assert place("chat_template_kwargs", {"path": "/a/b", "url": "http://h/", "deep": {"host": 1}}) is None
    assert place("chat_template_kwargs", {"chat_template": "x"}) == "chat_template_kwargs.chat_template"
    assert place("template_vars", {"Template": "x"}) == "template_vars.Template"


def test_images_are_inline_or_they_are_places() -> None:
    for value in ("data:image/png;base64,AA", "iVBORw0KGgo" + "A" * 80, "/9j/" + "A" * 80):
        assert is_inline(value)
        assert place("image_data", [value, {"data": value, "id": 1}]) is None
    for value in ("x.png", "x", "/etc/x.png", "/" + "a" * 80, "https://h/x.png"):
        assert not is_inline(value)
        assert place("image_data", value) == "image_data"


@looped(
    "value",
    some([["x"] * (MOST_STEPS + 1), [{"a": 1}] * (MOST_STEPS + 1), ["a-b." * 100] * (MOST_STEPS // 10)], 3),
)  # fmt: skip
def test_what_holds_too_much_to_look_through_does_not_pass(value: JsonValue) -> None:
    assert place("x", value) == "x"


@pytest.mark.thorough
def test_the_bound_is_one_for_all_members_of_a_request() -> None:
    search = Search()
    half: JsonValue = ["x"] * (MOST_STEPS * 2 // 5)
    assert search.find("a", half) is None
    assert search.find("b", half) is None
    assert search.find("c", half) is not None


def test_token_ids_pass_in_any_number() -> None:
    assert place("input_ids", [*range(200_000)]) is None


JSON = st.recursive(
    st.none() | st.integers() | st.sampled_from(["x", "/etc/passwd", "http://h/"]) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "text", "url"]), inner),
)


@given(JSON)
def test_what_is_found_is_there(value: JsonValue) -> None:
    found = Search().find("x", value)
    if found is not None:
        for step in found.place:
            value = value[step]  # type: ignore[index]
        assert found.place[-1:] == ("url",) or value in ("/etc/passwd", "http://h/")
