"""A client can make an engine open, load or run only the files and addresses that the configuration allows.

The tests use sockets if a request must not arrive, and run in this process for a vendor outside the own network.
"""

from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio

from config.load_config import load_text
from providers.emulation.plan_calls import CallPlan
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from proxy.gateway.dry_run import Explanation, explained, sent_calls
from proxy.routing.snapshot import ANYONE, build_snapshot
from tests.proxy.kit.gateway_rig import Rig, ask, rig
from tests.proxy.kit.raw_client import Answer
from tests.support.http_scripts import json_answer
from tests.support.looped import looped
from tests.support.openai_wire import chat, completion

CHAT = "/v1/chat/completions"
ADDRESS = 'base_url: "http://127.0.0.1:PORT/v1", allow_private: true'
TABLE = f"""
vendors:
  v: {{profile: vllm, {ADDRESS}}}
  sgl: {{profile: sglang, {ADDRESS}}}
  tgi: {{profile: tgi, {ADDRESS}}}
  disguised: {{profile: together, {ADDRESS}, api_key: k}}
models:
  v/m: {{}}
  v/open: {{allow_fields: [chat_template, lora_path, remote_host], media: {{schemes: [https, data, http, gs]}}}}
  v/inner: {{media: {{schemes: [https, http], allow_private: true}}}}
  v/drops: {{on_unsupported: drop}}
  sgl/m: {{}}
  tgi/m: {{}}
  disguised/m: {{}}
"""

LOCATORS: dict[str, JsonObject] = {
    "a peer of the KV cache": {"kv_transfer_params": {"do_remote_prefill": True, "remote_host": "10.0.0.9"}},
    "the same in another case": {"KV_Transfer_Params": {"remote_host": "10.0.0.9"}},
    "the same among extra arguments": {"vllm_xargs": {"kv_transfer_params": {"remote_host": "10.0.0.9"}}},
    "a peer of the encoder cache": {"ec_transfer_params": {"peer": "10.0.0.9"}},
    "a peer in a request's id": {"request_id": "___prefill_addr_10.0.0.9:21001___decode_addr_10.0.0.8:22001"},
    "a bootstrap server": {"bootstrap_host": "10.0.0.9", "bootstrap_port": 8998, "bootstrap_room": 1},
    "another worker's socket": {"http_worker_ipc": "ipc:///tmp/worker"},
    "disaggregated serving": {"disaggregated_params": {"opaque_state": "AAAA"}},
    "an adapter's path": {"lora_path": "/models/of/others"},
    "an adapter": {"lora_request": {"lora_name": "x", "lora_int_id": 1, "lora_local_path": "/x"}},
    "an adapter from anywhere": {"adapter_id": "evil/adapter", "adapter_source": "hub"},
    "a template": {"chat_template": "{{ ''.__class__ }}"},
    "a template in camel case": {"chatTemplate": "{{ ''.__class__ }}"},
    "a template among its variables": {"chat_template_kwargs": {"chat_template": "{% for %}"}},
    "code by its name": {"logits_processors": ["os.system"]},
    "pickled code": {"custom_logit_processor": "gASV"},
    "pickled code in nested settings": {"sampling_params": {"custom_logit_processor": "gASV"}},
    "tool servers": {"mcp_servers": [{"type": "url", "url": "http://169.254.169.254/"}]},
    "an address under a name that says nothing": {"x": {"y": ["http://169.254.169.254/latest/meta-data"]}},
    "a file under a name that says nothing": {"x": "file:///etc/passwd"},
    "a path under a name that says nothing": {"x": "/etc/passwd"},
    "an image's path": {"image_data": "/etc/secret.png"},
}


def param_of(answer: Answer) -> JsonValue:
    """Return the field that a refusal names."""
    found: JsonValue = orjson.loads(answer.body)["error"]["param"]
    return found


def generations(served: Rig) -> list[JsonObject]:
    return [orjson.loads(each.body) for each in served.vendor.requests if each.target.endswith("/completions")]


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    """A gateway before engines. One fake plays all of them."""
    async with rig(TABLE) as made:
        made.vendor.default = json_answer(200, completion("hello", "m"))
        yield made


@looped("attack", LOCATORS)
async def test_threat_14_no_field_of_a_client_leads_an_engine_elsewhere(served: Rig, attack: str) -> None:
    fields = LOCATORS[attack]
    name = next(iter(fields))
    for model in ("v/m", "sgl/m", "disguised/m"):
        for body, param in ((ask(model, **fields), name), (ask(model, inference_extra_params=fields), "inference")):
            refused = await served.post("/v1/completions", body)
            assert (refused.status, refused.code) == (400, "unsupported_parameter"), (model, body)
            assert f"'{param}" in refused.message
            assert model in refused.message
            assert "`allow_fields: [" in refused.message
    assert served.vendor.requests == []


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (
            "___prefill_addr_10.0.0.9:21001___decode_addr_x.y:22001",
            "___prefill_addr_10.0.0.9-21001___decode_addr_x.y-22001",
        ),
        ("team:1234", "team:1234"),
        ("2026-11-22T14:55:40.123", "2026-11-22T14:55:40.123"),
        ("9f8e7d6c-5b4a-4c3d-8e2f-1a0b9c8d7e6f", "9f8e7d6c-5b4a-4c3d-8e2f-1a0b9c8d7e6f"),
    ],
)
async def test_threat_14_no_request_id_of_a_client_names_an_engine_s_peers(served: Rig, given: str, sent: str) -> None:
    answer = await served.post("/v1/completions", ask(), {"x-request-id": given})
    assert (answer.status, answer.headers["x-request-id"]) == (200, given)
    assert {received.header("x-request-id") for received in served.vendor.requests} == {sent}


HARMLESS: JsonObject = {
    "add_generation_prompt": True, "add_special_tokens": False, "allowed_token_ids": [1, 2], "bad_words": ["http://x"],
    "cache_prompt": True, "cache_salt": "a/b:1234", "chat_template_kwargs": {"enable_thinking": False},
    "continue_final_message": False, "custom_params": {"a": 1}, "data_parallel_rank": 0, "detokenize": True,
    "documents": [{"title": "t", "text": "x", "url": "https://docs.example/x"}], "dry_multiplier": 0.5,
    "dry_sequence_breakers": ["\n", ":", "/"], "early_stopping": False, "extra_key": "k",
    "guided_decoding_backend": "xgrammar", "guided_whitespace_pattern": "[ ]?", "id_slot": 0,
    "include_reasoning": True, "input_extra": [{"filename": "/home/me/a.py", "text": "x"}], "keep_alive": "10m",
    "length_penalty": 1.0, "lora": [{"id": 0, "scale": 0.5}], "media_io_kwargs": {"video": {"num_frames": 40}},
    "min_tokens": 3, "mm_processor_kwargs": {"min_pixels": 784, "fps": 2}, "mirostat": 2, "n_keep": 5,
    "negative_prompt": "no /tmp here", "options": {"num_ctx": 4096}, "priority": 1, "prompt_logprobs": 1,
    "reasoning_format": "auto", "repetition_detection": {"max_pattern_size": 3},
    "response_fields": ["timings/prompt_n"],
    "return_hidden_states": False, "rid": "team:1234",
    "samplers": ["top_k", "min_p"], "separate_reasoning": True,
    "session_params": {"id": "s", "offset": 0}, "skip_special_tokens": True, "spaces_between_special_tokens": True,
    "stop_token_ids": [2], "stream_reasoning": False, "t_max_predict_ms": 500, "thinking_token_budget": 100,
    "timings_per_token": True, "top_a": 0.1, "truncate_prompt_tokens": 100, "ttl": 60, "use_beam_search": False,
    "vllm_xargs": {"a": 1, "b": ["x"]}, "xtc_probability": 0.1, "ratio": "1.5:1", "when": "12:30",
}  # fmt: skip
"""Fields that clients of vLLM, SGLang, llama.cpp and Ollama send legitimately."""


@pytest.mark.parametrize("name", HARMLESS)
async def test_threat_14_what_clients_of_engines_send_in_good_faith_passes(served: Rig, name: str) -> None:
    for model in ("v/m", "sgl/m"):
        for fields in ({name: HARMLESS[name]}, {"inference_extra_params": {name: HARMLESS[name]}}):
            assert (await served.post("/v1/completions", ask(model, **fields))).status == 200
    assert [sent[name] for sent in generations(served)] == [HARMLESS[name]] * 4


async def test_threat_14_what_the_table_allows_an_engine_passes_and_nothing_beside_it(served: Rig) -> None:
    fields: JsonObject = {"chat_template": "{{ x }}", "lora_path": "/x", "deep": {"remote_host": {"url": "http://h/"}}}
    assert (await served.post("/v1/completions", ask("v/open", **fields))).status == 200
    (sent,) = generations(served)
    assert fields.items() <= sent.items()
    refused = await served.post("/v1/completions", ask("v/open", **fields, bootstrap_host="h"))
    assert (refused.code, param_of(refused)) == ("unsupported_parameter", "bootstrap_host")
    again = await served.post("/v1/completions", ask("v/open", api_key="x"))
    assert (again.status, again.code) == (400, "invalid_value")


async def test_threat_14_on_unsupported_drop_leaves_a_locator_out_and_says_so(served: Rig) -> None:
    answer = await served.post("/v1/completions", ask("v/drops", top_a=1, lora_path="/x"))
    assert (answer.status, answer.headers["x-dragoman-dropped"]) == (200, "lora_path")
    (sent,) = generations(served)
    assert "lora_path" not in sent
    assert sent["top_a"] == 1


def image(url: JsonValue) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": url}}


def talk(model: str, *parts: JsonValue, **more: JsonValue) -> JsonObject:
    message: JsonObject = {"role": "user", "content": [{"type": "text", "text": "?"}, *parts], **more}
    return {"model": model, "messages": [message], "max_tokens": 5}


PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="
PARTS: dict[str, JsonObject] = {
    "a file": image("file:///etc/passwd"),
    "a file behind a space": image(" file:///etc/passwd"),
    "a file with a tab within": image("fi\tle:///etc/passwd"),
    "a path": image("/etc/secrets/key.png"),
    "a path beside the server": image("../secret.jpg"),
    "an address as the part's own text": {"type": "image_url", "image_url": "file:///etc/passwd"},
    "plain http": image("http://example.com/x.png"),
    "a bucket": image("gs://bucket/x.png"),
    "a bucket of another cloud": image("s3://bucket/x.png"),
    "metadata": image("https://169.254.169.254/latest/meta-data/"),
    "metadata by its name": image("https://metadata.google.internal/x.png"),
    "metadata in disguise": image("https://2852039166/x.png"),
    "metadata in octal": image("https://0251.0376.0251.0376/x.png"),
    "metadata behind a user's name": image("https://example.com@169.254.169.254/x.png"),
    "metadata behind a backslash": image("https://example.com\\@169.254.169.254/x.png"),
    "metadata in other digits": image("https://\u2460\u2461\u2466.0.0.1/x.png"),
    "loopback": image("https://127.0.0.1:8000/x.png"),
    "loopback by its name": image("https://localhost/x.png"),
    "loopback in IPv6": image("https://[::1]/x.png"),
    "loopback mapped": image("https://[::ffff:127.0.0.1]/x.png"),
    "the own network": image("https://10.0.0.9/x.png"),
    "a neighbour by its name": image("https://redis/x.png"),
    "a service of the cluster": image("https://api.default.svc.cluster.local/x.png"),
    "a video": {"type": "video_url", "video_url": {"url": "http://10.0.0.9/x.mp4"}},
    "a sound": {"type": "audio_url", "audio_url": {"url": "file:///x.wav"}},
    "a file part": {"type": "file", "file": {"file_data": "file:///etc/passwd"}},
    "a list of frames": {"type": "video", "video": ["/etc/a.png", "/etc/b.png"]},
    "a source deep inside": {"type": "tool_result", "content": [{"type": "image", "source": {"url": "gs://b/x"}}]},
}


@looped("attack", PARTS)
async def test_threat_14_no_part_of_a_message_makes_an_engine_fetch_what_it_should_not(
    served: Rig, attack: str
) -> None:
    for model in ("v/m", "sgl/m", "disguised/m"):
        refused = await served.post(CHAT, talk(model, PARTS[attack]))
        assert (refused.status, param_of(refused)) == (400, "messages")
        assert "messages[0].content[1]" in refused.message
        assert model in refused.message
    assert served.vendor.requests == []


@pytest.mark.parametrize(
    "part",
    [
        image(PIXEL),
        image("https://upload.wikimedia.org/wikipedia/commons/x.jpg?width=800#top"),
        image("https://cdn.example.com:8443/a%20b.png"),
        image("HTTPS://93.184.216.34/x.png"),
        image("/9j/" + "A" * 200),
        {"type": "input_audio", "input_audio": {"data": "UklGR" + "A" * 80, "format": "wav"}},
        {"type": "file", "file": {"filename": "C:\\notes: all.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        {"type": "text", "text": "file: it is under http://10.0.0.9/"},
    ],
)
async def test_threat_14_media_of_good_clients_passes_to_an_engine(served: Rig, part: JsonObject) -> None:
    served.vendor.default = json_answer(200, chat("hello"))
    assert (await served.post(CHAT, talk("v/m", part))).status == 200
    (sent,) = generations(served)
    assert sent["messages"] == talk("v/m", part)["messages"]


async def test_threat_14_the_table_opens_schemes_and_the_own_network_but_never_metadata(served: Rig) -> None:
    served.vendor.default = json_answer(200, chat("hello"))
    for model, url, status in (
        ("v/open", "http://example.com/x.png", 200),
        ("v/open", "gs://bucket/x.png", 200),
        ("v/open", "http://10.0.0.9/x.png", 400),
        ("v/open", "s3://bucket/x.png", 400),
        ("v/inner", "http://10.0.0.9/x.png", 200),
        ("v/inner", "https://minio.internal/x.png", 200),
        ("v/inner", "https://169.254.169.254/x.png", 400),
        ("v/inner", "https://metadata.google.internal/x.png", 400),
        ("v/inner", PIXEL, 400),
    ):
        assert (await served.post(CHAT, talk(model, image(url)))).status == status, (model, url)


async def test_threat_14_messages_and_tools_hide_no_locator(served: Rig) -> None:
    hidden: JsonObject = talk("v/m", image(PIXEL), mm={"image_path": "/etc/passwd"})
    tool: JsonObject = {"type": "mcp", "server_label": "x", "server_url": "http://10.0.0.9/mcp"}
    offered: JsonObject = {**talk("v/m"), "tools": [tool]}
    for body, param in ((hidden, "messages"), (offered, "tools")):
        refused = await served.post(CHAT, body)
        assert (refused.status, refused.code, param_of(refused)) == (400, "unsupported_parameter", param)
    assert served.vendor.requests == []


async def test_threat_14_functions_may_be_about_addresses_and_paths(served: Rig) -> None:
    served.vendor.default = json_answer(200, chat("hello"))
    properties: JsonObject = {"path": {"type": "string"}, "url": {"type": "string", "default": "http://10.0.0.9/"}}
    function: JsonObject = {"name": "open_file", "parameters": {"type": "object", "properties": properties}}
    call: JsonObject = {"id": "c1", "type": "function", "function": {"name": "open_file", "arguments": '{"path":"/x"}'}}
    messages: list[JsonValue] = [
        {"role": "user", "content": "Open /etc/hosts and http://169.254.169.254/ for me"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "![](http://10.0.0.9/x.png)"},
    ]
    body: JsonObject = {"model": "v/m", "messages": messages, "tools": [{"type": "function", "function": function}]}
    assert (await served.post(CHAT, body)).status == 200


async def test_threat_14_images_in_a_text_are_judged_where_the_engine_fetches_them(served: Rig) -> None:
    for url in ("http://example.com/x.png", "https://169.254.169.254/x", "HTTPS://127.0.0.1/x"):
        prompt = f"Look: ![]({url}) and tell"
        for path, body in (
            ("/v1/completions", {"prompt": prompt}),
            (CHAT, talk("tgi/m", {"type": "text", "text": prompt})),
        ):
            refused = await served.post(path, {**body, "model": "tgi/m"})
            assert (refused.status, refused.code) == (400, "unsupported_parameter")
    for text in ("![](https://example.com/x.png)", "![](../x.png)", "see http://10.0.0.9/ or ![alt](http://10.0.0.9/)"):
        assert (await served.post("/v1/completions", ask("tgi/m", prompt=text))).status == 200
    assert (await served.post("/v1/completions", ask("v/m", prompt="![](http://10.0.0.9/x.png)"))).status == 200


# Vendors outside the own network -------------------------------------------------------------------------------------

HOSTED = """
vendors:
  router: {profile: openrouter, api_key: k}
  gem: {profile: gemini, api_key: k}
  claude: {profile: anthropic, api_key: k}
models:
  router/m: {}
  gem/m: {}
  gem/buckets: {media: {schemes: [https, data, gs]}}
  claude/m: {}
teams:
  cloud: {keys: ["sha256:DIGEST"], models: ["*"], media: {schemes: [data, gs]}}
""".replace("DIGEST", "ab" * 32)


def told(model: str, body: JsonObject, team: str | None = None) -> Explanation:
    table = build_snapshot(load_text(f"version: 1\n{HOSTED}", "table.yaml", {}))
    return explained(table, table.teams[team] if team else ANYONE, CHAT, orjson.dumps({**body, "model": model}))


def test_threat_14_a_hosted_vendor_answers_for_its_own_fields() -> None:
    fields: JsonObject = {
        "plugins": [{"id": "file-parser"}],
        "route": "fallback",
        "x": "/a/b",
    }
    explanation = told("router/m", {**talk("router/m"), **fields})
    assert explanation.chosen is not None
    sent = orjson.loads(sent_calls(explanation.chosen)[0].body)
    assert fields.items() <= sent.items()
    assert told("router/m", {**talk("router/m"), "base_url": "http://10.0.0.9/"}).error is not None


@looped(
    ("model", "url", "team", "passes"),
    [
        ("gem/m", "gs://bucket/x.png", None, False),
        ("gem/m", " gs://bucket/x.png", None, False),
        ("gem/buckets", "gs://bucket/x.png", None, True),
        ("gem/m", "gs://bucket/x.png", "cloud", True),
        ("gem/buckets", "https://example.com/x.png", "cloud", False),
        ("gem/m", "https://example.com/x.png", None, True),
        ("claude/m", "https://10.0.0.9/x.png", None, True),
        ("router/m", "http://example.com/x.png", None, False),
        ("router/m", "file:///etc/passwd", None, False),
        ("router/m", "s3://bucket/x.png", None, False),
    ],
)
def test_threat_14_a_vendor_reads_no_address_with_the_operator_s_identity_unless_the_table_says_so(
    model: str, url: str, team: str | None, passes: bool
) -> None:
    explanation = told(model, talk(model, image(url)), team)
    assert (explanation.chosen is not None) == passes
    if not passes:
        assert explanation.error is not None
        assert b"`media: {schemes: [" in explanation.error[1]


def test_threat_14_every_row_that_needs_no_hosted_account_is_an_engine() -> None:
    engines = {name for name, profile in load_profiles().items() if profile.engine}
    own = {name for name, profile in load_profiles().items() if profile.base_url and "localhost" in profile.base_url}
    assert own <= engines
    assert {"openai_compatible", "pais", "llm_engine", "nim", "sagemaker", "sagemaker_tgi"} <= engines
    assert engines.isdisjoint({"openai", "azure", "anthropic", "gemini", "bedrock", "fireworks", "mock"})


@looped("profile", sorted(load_profiles().keys() - {"mock"}))
def test_threat_14_no_dialect_writes_an_address_that_was_not_allowed(profile: str) -> None:
    text = f"""
version: 1
vendors: {{v: {{profile: {profile}, api_key: k, base_url: "https://v.example/p"}}}}
models: {{v/m: {{}}}}
"""
    table = build_snapshot(load_text(text, "table.yaml", {}))
    for url in ("gs://bucket/x.png", "s3://bucket/x.png", "file:///etc/x.png", "http://example.com/x.png"):
        (trial,) = explained(table, ANYONE, CHAT, orjson.dumps(talk("v/m", image(url)))).trials
        assert not isinstance(trial.outcome, CallPlan), url
