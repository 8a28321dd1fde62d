"""The capabilities of a row: the cells that each setting of the profile determines."""

from providers.capabilities import FEATURES, Cell, Support
from providers.dialects.openai.capabilities import capabilities
from providers.models.fit_profile import profile_for_model
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from tests.providers.dialects.openai.kit import every_row
from tests.support.looped import looped

TEXT, CHAT = Operation.COMPLETIONS, Operation.CHAT


def cell(row: str, feature: str, asked: Operation = TEXT, sent: Operation = TEXT, *, counted: bool = False) -> Cell:
    return capabilities(load_profiles()[row], asked, sent, counted)[feature]


@every_row
def test_every_feature_has_a_cell(row: str) -> None:
    profile = load_profiles()[row]
    for sent in profile.wires:
        assert set(capabilities(profile, sent, sent, counted=False)) == set(FEATURES)


@every_row
def test_what_is_emulated_says_how(row: str) -> None:
    profile = load_profiles()[row]
    for sent in profile.wires:
        table = capabilities(profile, TEXT, sent, counted=False)
        assert all(table[name].how for name in table if table[name].emulated)


@looped(
    ("row", "feature", "support"),
    [
        ("vllm", "prompt.batch", "native"),
        ("together", "prompt.batch", "emulated"),
        ("llamacpp", "prompt.tokens", "native"),
        ("llamacpp", "prompt.token_batch", "emulated"),
        ("together", "prompt.tokens", "refused"),
        ("together", "prompt.token_batch", "refused"),
        ("llamacpp", "n", "emulated"),
        ("vllm", "n", "native"),
        ("openai", "best_of", "native"),
        ("vllm", "best_of", "emulated"),
        ("tgi", "best_of", "refused"),
        ("together", "echo", "emulated"),
        ("sglang", "echo.logprobs", "refused"),
        ("vllm", "echo.logprobs", "native"),
        ("openai", "include_stop_str_in_output", "emulated"),
        ("vllm", "include_stop_str_in_output", "native"),
        ("openai", "guided_json", "refused"),
        ("vllm", "guided_choice", "native"),
        ("sglang", "guided_choice", "emulated"),
        ("openai", "unknown", "native"),
        ("vllm", "unknown", "native"),
    ],
)
def test_the_row_decides_on_completions(row: str, feature: str, support: str) -> None:
    assert cell(row, feature).support == support


def test_a_prompt_that_is_asked_by_chat_is_emulated_and_ids_are_not() -> None:
    assert cell("groq", "prompt", TEXT, CHAT).emulated
    assert cell("groq", "prompt.batch", TEXT, CHAT).emulated
    assert cell("groq", "prompt.tokens", TEXT, CHAT).refused
    assert cell("groq", "echo", TEXT, CHAT).emulated
    assert cell("groq", "images", TEXT, CHAT).emulated


def test_a_conversation_cannot_be_repeated_by_the_gateway() -> None:
    assert cell("groq", "echo", CHAT, CHAT).refused
    assert cell("vllm", "echo", CHAT, CHAT).refused
    assert cell("fireworks", "echo", CHAT, CHAT).native
    assert cell("fireworks", "echo.logprobs", CHAT, CHAT).refused


def test_a_model_that_takes_no_stop_gets_none_and_the_gateway_scans() -> None:
    reasoning = profile_for_model(load_profiles()["openai"], "o3")
    table = capabilities(reasoning, CHAT, CHAT, counted=False)
    assert table["stop"].emulated
    assert table.most_stops == 0


@looped(
    ("row", "counted", "truncate", "error"),
    [
        ("fireworks", False, "native", "native"),
        ("openai", False, "emulated", "native"),
        ("vllm", False, "native", "refused"),
        ("vllm", True, "native", "emulated"),
        ("ollama", False, "refused", "refused"),
        ("ollama", True, "emulated", "emulated"),
        ("mock", False, "native", "native"),
    ],
)
def test_what_the_vendor_does_at_its_window_decides_on_the_behaviour(
    row: str, counted: bool, truncate: str, error: str
) -> None:
    table = capabilities(load_profiles()[row], CHAT, CHAT, counted)
    assert table["context_length_exceeded_behavior.truncate"].support is Support(truncate)
    assert table["context_length_exceeded_behavior.error"].support is Support(error)


def test_only_what_the_gateway_has_a_part_in_is_watched() -> None:
    watched = capabilities(load_profiles()["openai"], CHAT, CHAT, counted=False).watched
    assert {"n", "guided"}.isdisjoint(watched)
    assert {"best_of", "stop", "include_stop_str_in_output"} <= watched
    assert {"guided", "response_format"} <= capabilities(load_profiles()["vllm"], TEXT, TEXT, counted=False).watched


def test_a_table_is_made_once() -> None:
    profile = load_profiles()["vllm"]
    assert capabilities(profile, TEXT, TEXT, True) is capabilities(profile, TEXT, TEXT, True)
