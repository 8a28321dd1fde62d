"""The meaning of errors of vendors of the OpenAI family, each with its vendor's envelope and message.

The bytes are in tests/providers/dialects/openai/fixtures as `ROW/error_STATUS_CASE.json`.
"""

from providers.dialects.shared.errors import classify
from providers.failure import FailureKind
from providers.profiles.load_profiles import load_profiles
from tests.providers.dialects.openai.kit import FIXTURES, fixture
from tests.support.looped import looped

KINDS: dict[str, FailureKind] = {
    "openai/error_401": FailureKind.AUTH,
    "openai/error_429_quota": FailureKind.QUOTA,
    "openai/error_429_rate": FailureKind.RATE_LIMITED,
    "openai/error_400_context": FailureKind.CONTEXT_LENGTH,
    "openai/error_400_legacy_context": FailureKind.CONTEXT_LENGTH,
    "openai/error_400_unsupported": FailureKind.INVALID_REQUEST,
    "openai/error_404_chat_model": FailureKind.NOT_FOUND,
    "azure/error_400_filter": FailureKind.CONTENT_FILTER,
    "azure/error_404_deployment": FailureKind.NOT_FOUND,
    "azure/error_400_operation": FailureKind.NOT_FOUND,
    "fireworks/error_400_extra": FailureKind.INVALID_REQUEST,
    "fireworks/error_412": FailureKind.QUOTA,
    "fireworks/error_500_fault": FailureKind.SERVER,
    "together/error_403_context": FailureKind.CONTEXT_LENGTH,
    "together/error_503": FailureKind.OVERLOADED,
    "groq/error_413_tpm": FailureKind.TOO_LARGE,
    "groq/error_498": FailureKind.OVERLOADED,
    "groq/error_400_tool": FailureKind.NONCONFORMING,
    "groq/error_400_context": FailureKind.CONTEXT_LENGTH,
    "mistral/error_422": FailureKind.INVALID_REQUEST,
    "mistral/error_429_capacity": FailureKind.OVERLOADED,
    "mistral/error_400_context": FailureKind.CONTEXT_LENGTH,
    "deepseek/error_402": FailureKind.QUOTA,
    "deepseek/error_400_context": FailureKind.CONTEXT_LENGTH,
    "openrouter/error_402": FailureKind.QUOTA,
    "openrouter/error_403": FailureKind.CONTENT_FILTER,
    "openrouter/error_404_parameters": FailureKind.UNSUPPORTED,
    "openrouter/error_400_tokens": FailureKind.CONTEXT_LENGTH,
    "openrouter/error_400_image": FailureKind.INVALID_REQUEST,
    "openrouter/error_403_key": FailureKind.QUOTA,
    "openrouter/error_404_model": FailureKind.NOT_FOUND,
    "openrouter/error_429_overloaded": FailureKind.OVERLOADED,
    "openrouter/error_500_timeout": FailureKind.TIMEOUT,
    "vllm/error_400_context": FailureKind.CONTEXT_LENGTH,
    "vllm/error_400_flat": FailureKind.INVALID_REQUEST,
    "vllm/error_401": FailureKind.AUTH,
    "sglang/error_400_context": FailureKind.CONTEXT_LENGTH,
    "sglang/error_503": FailureKind.OVERLOADED,
    "llamacpp/error_400_context": FailureKind.CONTEXT_LENGTH,
    "llamacpp/error_503_loading": FailureKind.OVERLOADED,
    "ollama/error_404": FailureKind.NOT_FOUND,
    "lm_studio/error_400_context": FailureKind.CONTEXT_LENGTH,
    "tgi/error_422_context": FailureKind.CONTEXT_LENGTH,
    "tgi/error_429": FailureKind.OVERLOADED,
    "tgi/error_424": FailureKind.SERVER,
    "pais/error_422": FailureKind.INVALID_REQUEST,
    "scale_genai/error_400": FailureKind.INVALID_REQUEST,
    "openai/error_503": FailureKind.OVERLOADED,
    "openai/error_429_tpm": FailureKind.TOO_LARGE,
    "azure/error_401": FailureKind.AUTH,
    "azure/error_429": FailureKind.RATE_LIMITED,
    "fireworks/error_402": FailureKind.QUOTA,
    "fireworks/error_404": FailureKind.NOT_FOUND,
    "fireworks/error_503": FailureKind.OVERLOADED,
    "together/error_402": FailureKind.QUOTA,
    "groq/error_400_json": FailureKind.NONCONFORMING,
    "groq/error_422": FailureKind.INVALID_REQUEST,
    "groq/error_424": FailureKind.SERVER,
    "groq/error_499": FailureKind.SERVER,
    "deepseek/error_422": FailureKind.INVALID_REQUEST,
    "deepseek/error_503": FailureKind.OVERLOADED,
    "openrouter/error_408": FailureKind.TIMEOUT,
    "openrouter/error_429": FailureKind.RATE_LIMITED,
    "openrouter/error_502": FailureKind.SERVER,
    "openrouter/error_503": FailureKind.OVERLOADED,
    "xai/error_400_key": FailureKind.AUTH,
    "xai/error_400_context": FailureKind.CONTEXT_LENGTH,
    "perplexity/error_400": FailureKind.INVALID_REQUEST,
    "cerebras/error_400_context": FailureKind.CONTEXT_LENGTH,
    "cerebras/error_400_silent": FailureKind.CONTEXT_LENGTH,
    "cerebras/error_401": FailureKind.AUTH,
    "cerebras/error_413_silent": FailureKind.CONTEXT_LENGTH,
    "cerebras/error_429": FailureKind.RATE_LIMITED,
    "cerebras/error_503_silent": FailureKind.OVERLOADED,
    "sambanova/error_410": FailureKind.NOT_FOUND,
    "sambanova/error_429": FailureKind.RATE_LIMITED,
    "nim/error_404": FailureKind.NOT_FOUND,
    "nim/error_422": FailureKind.INVALID_REQUEST,
    "hyperbolic/error_429": FailureKind.RATE_LIMITED,
    "deepinfra/error_401": FailureKind.AUTH,
    "deepinfra/error_422": FailureKind.INVALID_REQUEST,
    "nebius/error_400_context": FailureKind.CONTEXT_LENGTH,
    "novita/error_400_context": FailureKind.CONTEXT_LENGTH,
    "huggingface/error_401": FailureKind.AUTH,
    "huggingface/error_402": FailureKind.QUOTA,
    "databricks/error_400": FailureKind.INVALID_REQUEST,
    "databricks/error_400_cap": FailureKind.INVALID_REQUEST,
    "databricks/error_403": FailureKind.AUTH,
    "databricks/error_429": FailureKind.RATE_LIMITED,
    "cloudflare/error_400": FailureKind.INVALID_REQUEST,
    "cloudflare/error_400_model": FailureKind.NOT_FOUND,
    "cloudflare/error_429_capacity": FailureKind.OVERLOADED,
    "cloudflare/error_429_quota": FailureKind.QUOTA,
    "github_models/error_413_tokens": FailureKind.CONTEXT_LENGTH,
    "github_models/error_429": FailureKind.RATE_LIMITED,
    "moonshot/error_400_context": FailureKind.CONTEXT_LENGTH,
    "moonshot/error_400_reasoning": FailureKind.INVALID_REQUEST,
    "moonshot/error_429_overloaded": FailureKind.OVERLOADED,
    "moonshot/error_429_quota": FailureKind.QUOTA,
    "moonshot/error_429_rate": FailureKind.RATE_LIMITED,
    "zai/error_400_1210": FailureKind.INVALID_REQUEST,
    "zai/error_400_1261": FailureKind.CONTEXT_LENGTH,
    "zai/error_400_1301": FailureKind.CONTENT_FILTER,
    "zai/error_429_1113": FailureKind.QUOTA,
    "zai/error_429_1302": FailureKind.RATE_LIMITED,
    "zai/error_429_1303": FailureKind.RATE_LIMITED,
    "zai/error_429_1304": FailureKind.QUOTA,
    "zai/error_429_1305": FailureKind.RATE_LIMITED,
    "zai/error_429_1308": FailureKind.QUOTA,
    "zai/error_429_1312": FailureKind.OVERLOADED,
    "zai/error_429_1313": FailureKind.QUOTA,
    "zai/error_434_1220": FailureKind.AUTH,
    "dashscope/error_400_arrearage": FailureKind.QUOTA,
    "dashscope/error_400_cap": FailureKind.INVALID_REQUEST,
    "dashscope/error_400_context": FailureKind.CONTEXT_LENGTH,
    "dashscope/error_400_inspection": FailureKind.CONTENT_FILTER,
    "dashscope/error_400_inspection_native": FailureKind.CONTENT_FILTER,
    "dashscope/error_400_json": FailureKind.INVALID_REQUEST,
    "dashscope/error_400_stream": FailureKind.INVALID_REQUEST,
    "dashscope/error_429": FailureKind.RATE_LIMITED,
    "dashscope/error_429_allocation": FailureKind.RATE_LIMITED,
    "gemini_compat/error_400_context": FailureKind.CONTEXT_LENGTH,
    "gemini_compat/error_400_key": FailureKind.AUTH,
    "gemini_compat/error_400_unknown": FailureKind.INVALID_REQUEST,
    "gemini_compat/error_402": FailureKind.QUOTA,
    "gemini_compat/error_429": FailureKind.RATE_LIMITED,
    "cohere_compat/error_400": FailureKind.INVALID_REQUEST,
    "vllm/error_400_bug": FailureKind.INVALID_REQUEST,
    "vllm/error_404": FailureKind.NOT_FOUND,
    "vllm/error_422_image": FailureKind.INVALID_REQUEST,
    "vllm/error_503_queue": FailureKind.OVERLOADED,
    "sglang/error_400_flat": FailureKind.INVALID_REQUEST,
    "llamacpp/error_501": FailureKind.INVALID_REQUEST,
    "localai/error_500": FailureKind.SERVER,
    "lm_studio/error_400_keep": FailureKind.CONTEXT_LENGTH,
    "ollama/error_400_context": FailureKind.CONTEXT_LENGTH,
}


def test_every_error_fixture_is_in_the_table() -> None:
    files = FIXTURES.glob("*/error_[45]*.json")
    assert {f"{path.parent.name}/{path.stem}" for path in files} == set(KINDS)


@looped("name", KINDS)
def test_a_vendor_s_error_means_what_its_row_and_words_say(name: str) -> None:
    row, _, case = name.partition("/")
    status = int(case.split("_")[1])
    failure = classify(load_profiles()[row], status, {}, fixture(f"openai/{name}.json"))
    assert (failure.kind, failure.status) == (KINDS[name], status)
    assert failure.message
    for secret in ("sk-proj", "org-9aB"):
        assert secret not in failure.message


@looped(
    ("name", "part"),
    [
        ("openai/error_400_unsupported", "Unsupported parameter: 'max_tokens'"),
        ("mistral/error_422", "body.foo: Extra inputs are not permitted"),
        ("scale_genai/error_400", "The model endpoint is not ready."),
        ("fireworks/error_500_fault", "Gateway timeout"),
        ("tgi/error_424", "Request failed during generation"),
    ],
)
def test_the_message_is_found_in_every_envelope(name: str, part: str) -> None:
    row, _, case = name.partition("/")
    failure = classify(load_profiles()[row], int(case.split("_")[1]), {}, fixture(f"openai/{name}.json"))
    assert part in failure.message


def test_a_page_of_what_stands_before_a_vendor_is_not_quoted() -> None:
    failure = classify(load_profiles()["openai"], 502, {}, fixture("openai/openai/error_502.html"))
    assert failure.kind is FailureKind.SERVER
    assert "502" in failure.message
    assert "<" not in failure.message
