"""Bodies that real clients send: each parses as the client means it, or is refused for a stated reason.

The bodies in tests/fixtures/clients were rebuilt from the clients' source as of November 2026.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from providers.json_types import JsonValue
from providers.request_fields import is_neutral
from providers.unified_request import LogprobsWanted, Operation, Params, TextPrompt, TokenPrompt
from tests.proxy.surfaces.kit import ROWS, params_at_fault, refuse_bytes
from tests.support.looped import looped

BODIES = Path(__file__).resolve().parents[2] / "fixtures" / "clients"
DEFAULT = "local/default"


@dataclass(frozen=True)
class Client:
    """A client's recorded body, its destination, and the expected request; params without a meaning are left out."""

    file: str
    row: str
    params: Params
    chat: bool = False
    unknown: frozenset[str] = frozenset()

    @property
    def operation(self) -> Operation:
        return Operation.CHAT if self.chat else Operation.COMPLETIONS


CLIENTS = (
    Client(
        "lm_eval_loglikelihood",
        "openai",
        {"temperature": 0, "max_tokens": 1, "logprobs": LogprobsWanted(1, "legacy"), "seed": 1234, "echo": True},
    ),
    Client("lm_eval_generate_until", "openai", {"max_tokens": 256, "temperature": 0, "seed": 1234}),
    Client("lm_eval_chat", "openai", {"max_tokens": 256, "temperature": 0, "stop": ("\n\n",), "seed": 1234}, chat=True),
    Client("vllm_bench_serve", "openai", {"max_tokens": 128, "ignore_eos": True, "top_k": 50}),
    Client("guidellm", "openai", {"max_tokens": 128, "ignore_eos": True}),
    Client("aiperf", "openai", {"max_tokens": 64}),
    Client("langchain_openai", "openai", {"max_tokens": 256, "temperature": 0.7}),
    Client(
        "llama_index_openai_like",
        "openai",
        {"temperature": 0.1, "max_tokens": 16, "logprobs": LogprobsWanted(2, "legacy")},
    ),
    Client("llm_cli", "openai", {"max_tokens": 256}),
    Client("helm", "openai", {"temperature": 0, "max_tokens": 5, "logprobs": LogprobsWanted(1, "legacy")}),
    Client(
        "verifiers",
        "openai",
        {"max_tokens": 64, "temperature": 1, "logprobs": LogprobsWanted(1, "legacy"), "return_token_ids": True},
    ),
    Client("tabby", "openai", {"max_tokens": 64, "temperature": 0.1}),
    Client("minuet", "openai", {"suffix": "):\n    return 1", "max_tokens": 256, "stop": ("\n\n",)}),
    Client("llama_vscode", "openai", {"max_tokens": 64, "temperature": 0.1, "top_p": 0.99}),
    Client(
        "sillytavern_vllm",
        "openai",
        {"max_tokens": 200, "seed": -1, "stop": ("\nUser:",), "temperature": 1},
        unknown=frozenset(
            {"length_penalty", "early_stopping", "stop_token_ids", "min_tokens", "skip_special_tokens"}
            | {"spaces_between_special_tokens", "truncate_prompt_tokens"}
        ),
    ),
    Client("openai_python_completions", "openai", {"max_tokens": 7, "temperature": 0}),
    Client("vercel_ai_sdk_completion", "openai", {"max_tokens": 100, "stop": ("\nuser:",)}),
    Client("scale_gp_beta", "scale_v5", {"max_tokens": 20}),
    Client(
        "scale_gp_a62",
        "scale_v4",
        {
            "best_of": 2,
            "frequency_penalty": 0.5,
            "logit_bias": {"50256": -100},
            "logprobs": LogprobsWanted(2, "legacy"),
            "max_tokens": 20,
            "seed": 7,
            "stop": ("\n",),
            "temperature": 1,
            "user": "ann",
        },
    ),
    Client(
        "fireworks_ai_chat",
        "fireworks",
        {
            "max_tokens": 100,
            "reasoning_effort": "low",
            "response_format": {"type": "json_object", "schema": {"type": "object"}},
        },
        chat=True,
    ),
    Client(
        "continue_autocomplete",
        "openai",
        {
            "max_tokens": 1024,
            "temperature": 0.01,
            "stop": (
                *(f"<|{mark}|>" for mark in ("endoftext", "fim_prefix", "fim_middle", "fim_suffix", "fim_pad")),
                *("<|repo_name|>", "<|file_sep|>", "/src/", "#- coding: utf-8", "```"),
            ),
        },
    ),
    Client("pais_curl", "pais", {"temperature": 0, "stop": ("\n",), "max_tokens": 16, "seed": 1}),
)


def read(file: str) -> bytes:
    return (BODIES / f"{file}.json").read_bytes()


@looped("client", CLIENTS, ids=lambda client: client.file)
def test_a_clients_body_becomes_what_it_means(client: Client) -> None:
    request = ROWS[client.row].parse(client.operation, read(client.file), DEFAULT)
    meant = {
        name: value
        for name, value in request.params.items()
        if not is_neutral(name, value) and name != "context_length_exceeded_behavior"
    }
    assert meant == client.params
    assert frozenset(request.unknown or ()) == client.unknown


def test_scales_older_client_keeps_all_it_asked() -> None:
    request = ROWS["scale_v4"].parse(Operation.COMPLETIONS, read("scale_gp_a58"), None)
    assert request.params["max_tokens"] == 20
    assert request.params["logprobs"] == LogprobsWanted(2, "content")
    assert request.params["guided"].value == ("hi", "hello")
    assert (request.timeout, request.extra_params, request.extra_headers) == (
        30.0,
        {"min_tokens": 1},
        {"x-trace": "abc"},
    )
    assert request.unknown is None


def test_fireworks_client_keeps_all_it_asked() -> None:
    request = ROWS["fireworks"].parse(Operation.COMPLETIONS, read("fireworks_ai"), None)
    assert request.params["images"] == (("data:image/jpeg;base64,/9j/4AAQSkZJRg==",),)
    assert request.params["echo_last"] == 2
    assert request.injected == frozenset()
    assert request.unknown is None


def test_a_chat_with_everything_in_it_parses() -> None:
    request = ROWS["openai"].parse(Operation.CHAT, read("openai_python_chat"), None)
    assert request.choices == 2
    assert request.params["max_tokens"] == 100
    assert (request.params["store"], request.params["verbosity"]) == (False, "low")
    assert request.unknown is None


def test_streaming_benchmarks_get_the_usage_they_ask_for() -> None:
    running = ROWS["openai"].parse(Operation.COMPLETIONS, read("guidellm"), None).stream_options
    assert (running.include_usage, running.continuous_usage_stats) == (True, True)
    assert ROWS["openai"].parse(Operation.COMPLETIONS, read("vllm_bench_serve"), None).stream_options.include_usage


def test_prompts_keep_their_form() -> None:
    forms: dict[str, object] = {
        "lm_eval_loglikelihood": TokenPrompt(((464, 3797, 3332), (464, 3290))),
        "aiperf": TextPrompt(("hello world",)),
        "langchain_openai": TextPrompt(("Tell me a joke", "Tell me a story")),
    }
    for file, prompt in forms.items():
        assert ROWS["openai"].parse(Operation.COMPLETIONS, read(file), None).prompt == prompt


@pytest.mark.parametrize(
    ("file", "params"), [("lm_eval_gguf", ["logprobs", "model"]), ("axolotl_kd", ["max_new_tokens", "model"])]
)
def test_what_the_four_apis_forbid_is_refused_by_name(file: str, params: list[JsonValue]) -> None:
    assert params_at_fault(refuse_bytes(read(file))) == params


def test_every_recorded_body_is_used() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    assert [path.stem for path in BODIES.glob("*.json") if f'"{path.stem}"' not in here] == []
