"""Requests that are passed on unchanged except for the model's name."""

from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass, replace

import orjson
import pytest

from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.tasks.pass_on import PassedForm, PassedRequest, pass_on
from providers.unified_request import Task
from tests.providers.dialects.openai.kit import target
from tests.support.looped import looped

NOTHING: JsonObject = {}


@dataclass(frozen=True)
class Stored:
    """A stored upload that has the name of its model."""

    model: str
    length: int = 3

    async def pieces(self) -> AsyncIterator[bytes]:
        yield b"abc"


def asking(task: Task = Task.SPEECH, members: JsonObject = NOTHING) -> PassedRequest:
    content: JsonObject = {"model": "v/m", "input": "hi", **members}
    return PassedRequest(task, "v/m", content)


def test_only_the_model_of_a_body_changes() -> None:
    to = replace(target("openai"), upstream_model="tts-1", base_url="https://up/v1")
    sent = pass_on(asking(members={"voice": {"id": "v"}, "unheard_of": [1, {"a": None}]}), to).sent
    assert orjson.loads(sent.body) == {
        "model": "tts-1",
        "input": "hi",
        "voice": {"id": "v"},
        "unheard_of": [1, {"a": None}],
    }
    assert (sent.url, sent.method, sent.content_type) == ("https://up/v1/audio/speech", "POST", "application/json")


def test_a_form_goes_on_with_the_target_s_model() -> None:
    form = PassedForm({"model": "v/m", "language": "de"}, "multipart/form-data; boundary=b", Stored)
    to = replace(target("openai"), upstream_model="whisper-1", base_url="https://up/v1")
    sent = pass_on(PassedRequest(Task.TRANSCRIPTIONS, "v/m", form), to).sent
    assert (sent.url, sent.body) == ("https://up/v1/audio/transcriptions", b"")
    assert (sent.upload, sent.content_type) == (Stored("whisper-1"), "multipart/form-data; boundary=b")


@looped(
    ("fields", "refused"),
    [
        ({"include[]": ["logprobs", "/a/path"]}, None),
        ({"hints": ["a", "b"]}, None),
        ({"lora_path": ["", "/etc"]}, "lora_path"),
        ({"hints": ["a", "http://10.0.0.1/"]}, "hints"),
    ],
)
def test_each_text_of_a_field_that_a_form_repeats_is_checked(fields: JsonObject, refused: str | None) -> None:
    form = PassedForm(fields, "multipart/form-data; boundary=b", Stored)
    with nullcontext() if refused is None else pytest.raises(Refusal) as caught:
        pass_on(PassedRequest(Task.TRANSCRIPTIONS, "v/m", form), target("vllm"))
    assert caught is None or caught.value.param == refused


def test_on_azure_the_deployment_is_in_the_path() -> None:
    to = replace(target("azure"), upstream_model="dall", base_url="https://up", api_version="2024-10-21")
    sent = pass_on(asking(Task.IMAGES), to).sent
    assert sent.url == "https://up/openai/deployments/dall/images/generations?api-version=2024-10-21"


@looped(("vendor", "task"), [("azure", Task.MODERATIONS), ("groq", Task.IMAGES), ("anthropic", Task.SPEECH)])
def test_a_vendor_without_the_task_refuses_by_name(vendor: str, task: Task) -> None:
    with pytest.raises(Refusal, match="takes no requests for") as caught:
        pass_on(asking(task), target(vendor))
    assert (caught.value.param, caught.value.code) == ("model", "unsupported_parameter")


@looped("member", ["base_url", "Models", "api_key", "x_endpoint"])
def test_members_that_would_send_it_elsewhere_are_refused(member: str) -> None:
    with pytest.raises(Refusal, match="would change where the request goes") as caught:
        pass_on(asking(members={member: "https://evil"}), target("openai"))
    assert caught.value.param == member


@looped(
    ("vendor", "members", "refused"),
    [
        ("vllm", {"path": "/etc/passwd"}, True),
        ("openai_compatible", {"input": [{"type": "image_url", "image_url": {"url": "http://10.0.0.1/"}}]}, True),
        ("openai", {"input": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}, False),
        ("openai_compatible", {"input": ["a", "b"]}, False),
    ],
)
def test_an_engine_is_sent_nothing_that_names_a_host_or_a_path(vendor: str, members: JsonObject, refused: bool) -> None:
    task = Task.TRANSCRIPTIONS if vendor == "vllm" else Task.MODERATIONS
    with pytest.raises(Refusal) if refused else nullcontext() as caught:
        pass_on(asking(task, members), target(vendor))
    assert caught is None or caught.value.param in members


def test_fields_that_the_api_does_not_have_are_unknown() -> None:
    assert asking(members={"odd": 1, "voice": "x"}).unknown == {"odd"}
    form = PassedForm({"file": "", "odd": "1"}, "", Stored)
    assert PassedRequest(Task.TRANSCRIPTIONS, "m", form).unknown == {"odd"}
