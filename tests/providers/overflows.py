"""Vendors' messages for requests that exceed a limit, and the sizes that each message contains.

The shapes follow documentation, engine sources (vLLM 0.6 to 0.33, SGLang 0.5, TGI, llama.cpp) and public issue threads
as of November 2026; the numbers vary. This file asserts nothing.
"""

from dataclasses import dataclass

from providers.context_overflow import Overflow


@dataclass(frozen=True, slots=True)
class Sample:
    """A message, its overflow, and the `room` that it leaves for the response in tokens (`None`: unknown; below 1: no
    room)."""

    name: str
    text: str
    overflow: Overflow
    room: int | None = None


def exact(
    name: str, text: str, window: int, prompt: int, requested: int | None = None, *, alone: bool = False
) -> Sample:
    """Return a sample in which the prompt was counted exactly."""
    overflow = Overflow(window, prompt, requested, exact=True, prompt_alone=alone or prompt >= window)
    return Sample(name, text, overflow, window - prompt)


def alone(name: str, text: str, window: int | None = None, prompt: int | None = None) -> Sample:
    """Return a sample in which the prompt alone is too long. Its `room` is not known."""
    return Sample(name, text, Overflow(window, prompt, exact=prompt is not None, prompt_alone=True))


def cap(name: str, text: str, most: int, requested: int | None = None) -> Sample:
    """Return a sample with a maximum for the response's tokens."""
    return Sample(name, text, Overflow(requested=requested, output_cap=most))


LEGACY = (
    "This model's maximum context length is 4097 tokens, however you requested 4116 tokens (1044 in your prompt; 3072 "
    "for the completion). Please reduce your prompt; or completion length."
)
SPLIT = (
    "This model's maximum context length is 4097 tokens. However, you requested 4295 tokens (3245 in the messages, "
    "1050 in the completion). Please reduce the length of the messages or completion."
)
FUNCTIONS = (
    "This model's maximum context length is 4097 tokens. However, you requested 4145 tokens (1016 in the messages, 57 "
    "in the functions, and 3072 in the completion). Please reduce the length of the messages, functions, or completion."
)
VLLM_LARGE = (
    "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192 tokens "
    "and your request has 12 input tokens (9000 > 8192 - 12)."
)
VLLM_SUM = (
    "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt "
    "contains {} input tokens, for a total of at least 32769 tokens. Please reduce the length of the input prompt or "
    "the number of requested output tokens."
)
VLLM_CHARACTERS = (
    "This model's maximum context length is 32768 tokens. However, you requested 16384 output tokens and your prompt "
    "contains 77409 characters (more than 65536 characters, which is the upper bound for 16384 input tokens)."
)
VLLM_ALONE = (
    "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input tokens, "
    "which exceeds this limit even without any output tokens."
)
SGLANG_SUM = (
    "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of "
    "132528 tokens: 66992 tokens from the input messages and 65536 tokens for the completion."
)
TGI_SUM = (
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens and 512 "
    "`max_new_tokens`"
)
ANTHROPIC_SUM = (
    "input length and `max_tokens` exceed context limit: 184915 + 20000 > 204648, decrease input length or "
    "`max_tokens` and try again"
)
OPENROUTER = (
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 132463 tokens (1463 of text "
    "input, 131000 in the output). Please reduce the length of either one, or use the middle-out transform."
)
OPENROUTER_TOOLS = (
    "This endpoint's maximum context length is 200000 tokens. However, you requested about 201209 tokens (158536 of "
    "text input, 10673 of tool input, 32000 in the output)."
)
COHERE_SIZE = (
    "too many tokens: size limit exceeded by 19296 tokens. Try using shorter or fewer inputs. The limit for this model "
    "is 132000 tokens."
)
LM_STUDIO = (
    "Trying to keep the first 5210 tokens when context the overflows. However, the model is loaded with context length "
    "of only 4096 tokens, which is not enough."
)
GEMINI_CAP = (
    "Unable to submit request because it has a maxOutputTokens value of 70000 but the supported range is from 1 "
    "(inclusive) to 65537 (exclusive). Update the value and try again."
)

SAMPLES: tuple[Sample, ...] = (
    # The prompt, the response and the window.
    exact("openai_sum", LEGACY, 4097, 1044, 3072),
    exact("openai_sum", SPLIT, 4097, 3245, 1050),
    exact("openai_sum", FUNCTIONS, 4097, 1073, 3072),
    exact(
        "openai_messages",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 150008 tokens. "
        "Please reduce the length of the messages.",
        128000,
        150008,
    ),
    alone("openai_window", "Your input exceeds the context window of this model. Please adjust your input."),
    exact(
        "vllm_input",
        "This model's maximum context length is 8192 tokens. However, your request has 9001 input tokens. Please "
        "reduce the length of the input messages.",
        8192,
        9001,
    ),
    exact("vllm_max_tokens", VLLM_LARGE, 8192, 12, 9000),
    exact("vllm_sum", VLLM_SUM.format(900), 32768, 900, 32000),
    exact(
        "vllm_prompt",
        "This model's maximum context length is 8192 tokens. However, your prompt contains 8200 input tokens, which "
        "exceeds this limit even without any output tokens.",
        8192,
        8200,
    ),
    exact(
        "vllm_engine",
        "The decoder prompt (length 4100) is longer than the maximum model length of 4096. Make sure that it fits.",
        4096,
        4100,
    ),
    exact("sglang_sum", SGLANG_SUM, 131072, 66992, 65536),
    exact(
        "sglang_input",
        "The input (1000016 tokens) is longer than the model's context length (131072 tokens).",
        131072,
        1000016,
    ),
    exact("tgi_sum", TGI_SUM, 8193, 8000),
    exact("anthropic_sum", ANTHROPIC_SUM, 204648, 184915, 20000),
    exact("anthropic_prompt", "prompt is too long: 200027 tokens > 200000 maximum", 200000, 200027),
    exact("ollama_cloud", "The prompt is too long: 203557, model maximum context length: 196607", 196607, 203557),
    exact(
        "mistral",
        "Prompt contains 40687 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        40687,
    ),
    exact("cohere_size", COHERE_SIZE, 132000, 151296),
    alone("cohere_size", "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs."),
    exact(
        "cerebras",
        "Please reduce the length of the messages or completion. Current length is 8243 while limit is 8192",
        8192,
        8243,
    ),
    exact(
        "llamacpp",
        "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
        8192,
        9412,
    ),
    alone("llamacpp", "the request exceeds the available context size. try increasing the context size"),
    exact("lm_studio", LM_STUDIO, 4096, 5210),
    exact(
        "watsonx",
        "Invalid input argument: the number of input tokens 4098 cannot exceed the total tokens limit 4096 for it",
        4096,
        4098,
    ),
    exact("ds4", "Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens", 256000, 5958968),
    # Numbers that must not be used: derived, estimated, or of other things.
    Sample("vllm_sum", VLLM_SUM.format("at least 769"), Overflow(32768, requested=32000)),
    Sample("vllm_characters", VLLM_CHARACTERS, Overflow(32768, requested=16384)),
    Sample("vllm_characters", "your prompt contains 77409 characters (more than 65536)", Overflow()),
    Sample("vllm_prompt", VLLM_ALONE, Overflow(8192, prompt_alone=True)),
    Sample("openrouter", OPENROUTER, Overflow(131072, 1463, 131000), 129609),
    Sample("openrouter", OPENROUTER_TOOLS, Overflow(200000, 169209, 32000), 30791),
    Sample(
        "moonshot",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
        Overflow(262144, total=291351),
    ),
    Sample(
        "cohere_sum",
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 2049.",
        Overflow(2048, total=2049),
    ),
    Sample("minimax", "invalid params, context window exceeds limit", Overflow()),
    Sample("groq", "Please reduce the length of the messages or completion.", Overflow()),
    # The prompt against its own limit, which is not the window.
    alone("tgi_inputs", "Input validation error: `inputs` must have less than 4096 tokens. Given: 4097", None, 4097),
    alone(
        "gemini",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        None,
        1196265,
    ),
    alone("gemini", "The input token count exceeds the maximum number of tokens allowed 1048575."),
    alone(
        "vertex",
        "Unable to submit request because the input token count is 1251952 but model only supports up to 1048576. "
        "Reduce the input token count and try again.",
        None,
        1251952,
    ),
    alone(
        "cohere_prompt",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.",
        None,
        4292,
    ),
    alone("xai", "This model's maximum prompt length is 131072 but the request contains 149617 tokens.", None, 149617),
    alone("dashscope_input", "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"),
    alone("github", "Request body too large for gpt-4o model. Max size: 8000 tokens."),
    alone(
        "bedrock_tokens", "Too many input tokens. Max input tokens: 8192, request input token count: 10564", None, 10564
    ),
    alone("bedrock_tokens", "Too many input tokens"),
    alone("bedrock_maximum", "prompt tokens (1055489) exceed model maximum (1050000)", None, 1055489),
    alone(
        "bedrock_characters", "Malformed input request: expected maxLength: 2097152, actual: 2300000, please reformat"
    ),
    alone("triton", "Prompt length (3000) exceeds maximum input length (2048). Set log level to info", None, 3000),
    alone("copilot", "prompt token count of 128451 exceeds the limit of 128000", None, 128451),
    alone(
        "input_length", "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", None, 131393
    ),
    alone("input_length", "Requested input length 39818 exceeds maximum input length 32767", None, 39818),
    # The prompt, without a number.
    alone("ollama", "the prompt is longer than the context length"),
    alone("ollama", "input length exceeds the context length"),
    alone("ollama", "prompt too long; exceeded max context length by 4021 tokens"),
    alone("lm_studio_keep", "The number of tokens to keep from the initial prompt is greater than the context length"),
    alone("zhipu", "Prompt exceeds max length"),
    alone("zhipu", "Prompt 超长"),
    alone("too_long", "Input is too long for requested model."),
    alone("too_long", "prompt has too many tokens"),
    alone("any_prompt", "prompt_too_long"),
    # The maximum number of response tokens.
    Sample(
        "vllm_answer",
        "max_tokens=9000 cannot be greater than max_model_len=8192. Please request fewer output tokens.",
        Overflow(8192, requested=9000, output_cap=8192),
    ),
    cap(
        "openai_cap",
        "max_tokens is too large: 64000. This model supports at most 16384 completion tokens, whereas you "
        "provided 64000.",
        16384,
        64000,
    ),
    cap(
        "openai_value",
        "Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, but got 5000 instead.",
        4096,
    ),
    cap(
        "anthropic_cap",
        "max_tokens: 65536 > 64000, which is the maximum allowed number of output tokens for claude-haiku-4-5-20251001",
        64000,
        65536,
    ),
    cap(
        "bedrock_cap",
        "The maximum tokens you requested exceeds the model limit of 10000. Try again with a lower value.",
        10000,
    ),
    cap("gemini_cap", GEMINI_CAP, 65536),
    cap("range_cap", "Range of max_tokens should be [1, 65536]", 65536),
    cap("range_cap", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
    cap(
        "cohere_cap",
        "too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model - received "
        "8192.",
        4096,
    ),
    cap("cohere_cap", "too many tokens: max_tokens must be less than or equal to 4096", 4096),
    cap(
        "cohere_cap",
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the "
        "`context_window` for this model",
        8192,
    ),
    cap("databricks_cap", "max_tokens (9000) cannot exceed 8192", 8192, 9000),
    # Generic signatures, for messages without a sample.
    Sample("any", "context_length_exceeded", Overflow()),
    Sample("any", "The request passes the model's maximum context length.", Overflow()),
    Sample("any", "request of 9 exceeds the model's context window", Overflow()),
)

NOT_OVERFLOWS = (
    "Request too large for model `llama-3.3-70b` in organization `org_1` service tier `on_demand` on tokens per minute "
    "(TPM): Limit 6000, Requested 9512, please reduce the length of the messages or completion and try again.",
    "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 34218.",
    "Rate limit reached: too many tokens",
    "Too many tokens, please wait before trying again.",
    "You exceeded your current quota of tokens: token limit exceeded",
    "Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with "
    "length 70 instead.",
    "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead.",
    "max_tokens must be at least 1, got 0.",
    "max_tokens: Input should be greater than or equal to 1",
    "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
    "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes",
    "At least one of the image dimensions exceed max allowed size: 8000 pixels",
    "Unable to submit request because it has a topK value of 50 but the supported range is from 1 (inclusive) to 41 "
    "(exclusive).",
    "Extra inputs are not permitted, field: 'context_length_exceeded_behavior', value: 'truncate'",
    "messages: at least one message is required",
)
"""Messages with similar words about a rate, the length of a field, an image or another number."""
