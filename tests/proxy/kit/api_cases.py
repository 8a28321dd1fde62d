"""A configuration of vendors that lack features, all of them one fake, with their responses and readers of the
results.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import Rig
from tests.proxy.kit.raw_client import Answer
from tests.support.http_scripts import DONE, data_frames, json_answer, sse_answer
from tests.support.vendor_script import Received, Script

OPENAI, CHAT = "/v1/completions", "/v1/chat/completions"
FIREWORKS, PAIS = "/inference/v1/completions", "/api/v1/compatibility/openai/v1/completions"
SCALE_V4, SCALE_V5 = "/v4/beta/completions", "/v5/completions"
PATHS = (OPENAI, SCALE_V4, SCALE_V5, FIREWORKS, PAIS)

FAKE = 'base_url: "http://127.0.0.1:PORT/v1", allow_private: true'
TABLE = f"""
defaults: {{retries: {{attempts: 1}}}}
vendors:
  both: {{profile: openai_compatible, {FAKE}}} # takes lists of prompts and n
  single: {{profile: llamacpp, {FAKE}}} # takes one prompt, gives one choice, never the prompt's text
  talker: {{profile: groq, api_key: k, {FAKE}}} # has chat alone, no n and no log probabilities
  router: {{profile: openrouter, api_key: k, {FAKE}}} # gives one choice without log probabilities
  openai: {{profile: openai, api_key: k, {FAKE}}}
  vllm: {{profile: vllm, {FAKE}}}
  sglang: {{profile: sglang, {FAKE}}}
  fireworks: {{profile: fireworks, api_key: k, {FAKE}}}
  claude: {{profile: anthropic, api_key: k, base_url: "http://127.0.0.1:PORT", allow_private: true}}
models:
  both/*: {{}}
  # Wide enough for every prompt here, so that no tokenizer is asked.
  single/*: {{context_window: 100000}}
  vllm/*: {{context_window: 100000}}
  sglang/*: {{context_window: 100000}}
  talker/*: {{}}
  router/*: {{}}
  openai/*: {{}}
  openai/gpt-3.5-turbo-instruct: {{context_window: 4096}}
  openai/gpt-x: {{deployments: {{my-deployment: {{upstream_model: gpt-x-prod}}}}}}
  openai/gpt-y: {{}}
  fireworks/*: {{}}
  claude/*: {{max_output_tokens: 100}}
routes:
  scored: {{targets: [sglang/m, vllm/m]}}
"""


def choice(text: str, index: int = 0, ended: str | None = "stop", logprobs: JsonValue = None) -> JsonObject:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": ended}


def usage(prompt: int, completion: int) -> JsonObject:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def whole(*choices: JsonObject, counts: JsonObject | None = None, **members: JsonValue) -> Script:
    """Return a non-streaming text completion."""
    body: JsonObject = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", **members}
    return json_answer(200, {**body, "choices": list(choices), "usage": counts or usage(3, 2)})


def pieces(*choices: JsonObject, counts: JsonObject | None = None, **members: JsonValue) -> list[bytes]:
    """Return the frames of a streamed text completion: one for each gain, then the usage, then the terminator."""
    body: JsonObject = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", **members}
    gains: list[JsonObject] = [{**body, "choices": [gain]} for gain in choices]
    return [*data_frames(*gains, {**body, "choices": [], "usage": counts or usage(3, 2)}), DONE]


def streamed(*texts: str, counts: JsonObject | None = None) -> Script:
    """Return a stream of one choice in these chunks."""
    return sse_answer(pieces(*(choice(text, ended=None) for text in texts), choice(""), counts=counts))


def error(status: int, message: str, **members: JsonValue) -> Script:
    return json_answer(status, {"error": {"message": message, "type": "invalid_request_error", **members}})


def either(text: Callable[[JsonObject], str], counts: JsonObject | None = None) -> Callable[[Received], Script]:
    """Respond with one choice whose text is made from the call's body, streamed in chunks of three characters if the
    call asks for a stream.
    """

    def answer(received: Received) -> Script:
        body = sent(received)
        said = text(body)
        if body.get("stream") is not True:
            return whole(choice(said), counts=counts)
        return streamed(*(said[at : at + 3] for at in range(0, len(said), 3)), counts=counts)

    return answer


def sent(received: Received) -> JsonObject:
    """Return the body of the call."""
    body = received.json()
    assert isinstance(body, dict)
    return body


def calls(served: Rig) -> list[JsonObject]:
    """Return the bodies of every call that a vendor got."""
    return [sent(received) for received in served.vendor.requests]


def frames(answer: Answer) -> list[JsonObject]:
    return [cast(JsonObject, orjson.loads(data)) for data in answer.events() if data != b"[DONE]"]


def choices(bodies: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for body in bodies:
        yield from cast(list[JsonObject], body.get("choices", []))


def texts(answer: Answer) -> dict[int, str]:
    bodies = frames(answer) if answer.body.startswith(b"data:") else [answer.json()]
    found: dict[int, str] = {}
    for each in choices(bodies):
        index = cast(int, each["index"])
        found[index] = found.get(index, "") + str(each["text"])
    return found


def emulated(answer: Answer) -> str | None:
    """Return the fields that the gateway emulated."""
    return answer.headers.get("x-dragoman-emulated")
