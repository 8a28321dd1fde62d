"""Refusals by vendors that concern the model, and refusals that concern the request."""

from providers.context_overflow import Overflow
from providers.failure import Failure, FailureKind
from providers.models.refusals import if_model_refuses, refuses_earlier_reasoning, refuses_effort
from tests.support.looped import looped

KIND = FailureKind.INVALID_REQUEST


@looped(
    "message",
    [
        "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function "
        "tools, use /v1/responses or set reasoning_effort to 'none'.",
        "Function tools with reasoning_effort are not supported for gpt-5.6 in [address] To use function tools, …",
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        "The model returned the following errors: This model doesn't support the stopSequences field.",
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) is supported.",
        "Invalid content type. image_url is only supported by certain models.",
        "This model does not support image input.",
        "This model does not support tools.",
        "This model doesn\u2019t support tool use in streaming mode.",
        "registry.ollama.ai/library/gemma3:latest does not support tools",
        "invalid temperature: only 1 is allowed for this model",
        "Argument not supported on this model: reasoning_effort",
        "Function calling is not enabled for models/gemma-3-27b-it",
        "Thinking mode does not support this tool_choice",
        "'claude-x' does not support the effort parameter",
        "adaptive thinking is not supported on this model",
        "`temperature` is deprecated for this model.",
        "llava is not a multimodal model",
        "This model only supports single tool-calls at once!",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "Unrecognized request argument supplied: reasoning_effort",
    ],
)
def test_a_refusal_about_the_model_is_recognised(message: str) -> None:
    failure = if_model_refuses(Failure(KIND, message, 400, "unsupported_value", "temperature"))
    assert (failure.kind, failure.message, failure.code) == (FailureKind.UNSUPPORTED, message, "unsupported_value")


@looped(
    "failure",
    [
        Failure(KIND, "Invalid value: 'messages[0].role'. Supported values are: 'system', 'user'.", 400),
        Failure(KIND, "messages.0.content: Input should be a valid list", 400),
        Failure(KIND, "temperature: must be at most 1", 400),
        Failure(KIND, "Unrecognized request argument supplied: foo", 400),
        Failure(KIND, "The image could not be read.", 400),
        Failure(KIND, "max_tokens is too large for this model", 400, overflow=Overflow(output_cap=9)),
        Failure(FailureKind.SERVER, "This model does not support tools.", 500),
        Failure(FailureKind.RATE_LIMITED, "Too many requests for this model", 429),
    ],
)
def test_other_failures_stay(failure: Failure) -> None:
    assert if_model_refuses(failure) is failure


@looped(
    ("message", "refused"),
    [
        ('"llama3.2" does not support thinking', True),
        ("registry.ollama.ai/library/gemma3:latest does not support thinking", True),
        ("`reasoning_effort` is not supported with this model", True),
        ("Unsupported parameter: 'reasoning_effort' is not supported with this model.", True),
        ("adaptive thinking is not supported on this model", True),
        ("'claude-x' does not support the effort parameter", True),
        ("Unrecognized request argument supplied: reasoning_effort", True),
        ("This model does not support tools.", False),
        ("`messages[3].reasoning`: reasoning is not supported with this model", False),
        ("Thinking mode does not support this tool_choice", False),
    ],
)
def test_a_refusal_of_thinking_is_told_from_others(message: str, refused: bool) -> None:
    assert refuses_effort(Failure(KIND, message, 400)) == refused
    assert refuses_effort(Failure(FailureKind.UNSUPPORTED, message, 400)) == refused
    assert not refuses_effort(Failure(FailureKind.SERVER, message, 500))


@looped(
    ("message", "refused"),
    [
        ("Reasoning input is not enabled for this model", True),
        ("messages[1].reasoning: reasoning is not supported with this model", True),
        ("body.messages.1.assistant.reasoning_content: property 'reasoning_content' is unsupported", True),
        ("messages.1.content.0.thinking: Extra inputs are not permitted", True),
        ("messages[1].content is not supported with this model", False),
        ("reasoning_effort is not supported with this model", False),
    ],
)
def test_a_refusal_of_the_reasoning_in_earlier_turns_is_told_from_others(message: str, refused: bool) -> None:
    for kind in (KIND, FailureKind.UNSUPPORTED):
        assert refuses_earlier_reasoning(Failure(kind, message, 400)) is refused
    assert not refuses_earlier_reasoning(Failure(FailureKind.SERVER, message, 500))
