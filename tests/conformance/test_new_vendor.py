"""A fictional vendor, added by one profile row alone, is loaded, shown and called through the gateway.

The row is the whole change; `CONTRIBUTING.md` describes how to write one.
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest

from providers.dialects.capability_matrix import matrix_entries
from providers.json_types import JsonObject
from providers.profiles import load_profiles as profiles
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from proxy.cli.vendors_command import vendors_text
from tests.conformance.fake_engine import FakeEngine
from tests.conformance.feature_requests import SCHEMA
from tests.conformance.read_answer import dropped_fields, emulated_fields, read_answer
from tests.proxy.kit.gateway_rig import rig
from tests.support.http_scripts import json_answer

ROW = """
# nowhere 0.1; "Talk".
nowhere:
  base_url: https://{region}.nowhere.example/api
  paths: {chat: /v2/chat/completions, completions: null}
  raw_prompts: chat
  unknown_fields: refuse
  max_tokens_field: {chat: max_completion_tokens}
  accepts: {chat: [top_k]}
  refuses: {chat: [n, user, logit_bias]}
  rename: {chat: {seed: random_seed, top_k: sampling.top_k}}
  bounds: {temperature: [0, 1]}
  structured: json_schema
  usage: always
  hooks: [alternating_roles]
  errors: {codes: {out_of_coins: quota}, patterns: {'^nobody is home$': overloaded}}
"""
TABLE = """
vendors:
  nowhere: {api_key: sk-a, base_url: "http://127.0.0.1:PORT/api", allow_private: true}
models:
  nowhere/one: {max_output_tokens: 64}
"""
USER: JsonObject = {"role": "user", "content": "Say hi"}


@pytest.fixture(autouse=True)
def row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    packaged = files("providers.profiles").joinpath("profiles.yaml").read_text(encoding="utf-8")
    (tmp_path / "profiles.yaml").write_text(packaged + ROW, encoding="utf-8")
    monkeypatch.setattr(profiles, "files", lambda package: tmp_path)
    load_profiles.cache_clear()
    yield
    load_profiles.cache_clear()


def test_a_vendor_is_a_few_lines_of_yaml() -> None:
    assert len(ROW.strip().splitlines()) <= 15
    assert load_profiles()["nowhere"].placeholders == ("region",)


def test_it_has_its_place_in_the_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    found = {row.operation: row for row in matrix_entries([load_profiles()["nowhere"]])}
    assert found[Operation.CHAT].cells["top_k"].native
    assert found[Operation.CHAT].cells["n"].emulated
    assert found[Operation.COMPLETIONS].cells["prompt"].emulated
    assert found[Operation.CHAT].cells["logit_bias"].refused
    assert found[Operation.CHAT].cells["user"].left_out
    assert vendors_text("nowhere") == 0
    assert "nowhere" in capsys.readouterr().out


async def test_a_chat_goes_out_under_its_names() -> None:
    async with rig(TABLE) as running:
        running.vendor.default = FakeEngine("nowhere")
        sampling: JsonObject = {"max_tokens": 50, "seed": 7, "top_k": 5, "temperature": 0.5}
        talk: JsonObject = {"model": "nowhere/one", "messages": [USER, USER], **sampling}
        answer = await running.post("/v1/chat/completions", talk)
        (received,) = running.vendor.requests
        assert received.path == "/api/v2/chat/completions"
        assert received.json() == {
            "model": "one",
            "messages": [{"role": "user", "content": "Say hi\n\nSay hi"}],
            "max_completion_tokens": 50,
            "random_seed": 7,
            "sampling": {"top_k": 5},
            "temperature": 0.5,
        }
        assert (read_answer(answer).only.finish, answer.json()["model"]) == ("stop", "nowhere/one")


@pytest.mark.parametrize("stream", [False, True])
async def test_completions_and_what_it_lacks_are_made_by_the_gateway(stream: bool) -> None:
    async with rig(TABLE) as running:
        running.vendor.default = FakeEngine("nowhere")
        body: JsonObject = {"model": "nowhere/one", "prompt": "Say hi", "n": 2, "echo": True, "stream": stream}
        seen = read_answer(await running.post("/v1/completions", body))
        assert sorted(choice.text for choice in seen.choices.values()) == [
            "Say hione two END four",
            "Say hione two END three",
        ]
        assert set(seen.named) >= {"prompt", "n", "echo"}
        assert all("stream_options" not in cast(JsonObject, each.json()) for each in running.vendor.requests)


async def test_a_constraint_goes_out_in_its_style() -> None:
    async with rig(TABLE) as running:
        running.vendor.default = FakeEngine("nowhere")
        body: JsonObject = {"model": "nowhere/one", "messages": [USER], "guided_json": SCHEMA}
        answer = await running.post("/v1/chat/completions", body)
        assert read_answer(answer).only.text == '{"a":1}'
        assert emulated_fields(answer) == ()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("logit_bias", {"1": 2}, "'logit_bias' is not supported by nowhere/one/default."),
        ("min_p", 0.5, "'min_p' is not supported by nowhere/one/default."),
        ("temperature", 1.5, "'temperature' must be at least 0 and at most 1 on nowhere/one/default."),
    ],
)
async def test_what_its_row_refuses_never_leaves(field: str, value: object, message: str) -> None:
    async with rig(TABLE) as running:
        answer = await running.post(
            "/v1/chat/completions", {"model": "nowhere/one", "messages": [USER], field: cast(str, value)}
        )
        assert (answer.status, answer.error()["param"]) == (400, field)
        assert message in answer.message
        assert running.vendor.requests == []


async def test_advice_that_its_row_refuses_is_left_out_and_named() -> None:
    async with rig(TABLE) as running:
        running.vendor.default = FakeEngine("nowhere")
        talk: JsonObject = {"model": "nowhere/one", "messages": [USER], "user": "ann"}
        answer = await running.post("/v1/chat/completions", talk)
        assert (answer.status, dropped_fields(answer)) == (200, ("user",))
        (received,) = running.vendor.requests
        assert "user" not in cast(JsonObject, received.json())


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        ({"code": "out_of_coins", "message": "no"}, 429, "insufficient_quota"),
        ({"code": "x", "message": "Nobody is home"}, 503, "overloaded"),
    ],
)
async def test_its_errors_mean_what_its_row_says(error: JsonObject, status: int, code: str) -> None:
    async with rig(TABLE) as running:
        running.vendor.default = lambda received: json_answer(400, {"error": error})
        answer = await running.post("/v1/chat/completions", {"model": "nowhere/one", "messages": [USER]})
        assert (answer.status, answer.code) == (status, code)
