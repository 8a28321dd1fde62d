"""Patterns of the error messages by which upstreams report that a request does not fit.

Sources: the messages in vendors' documentation, engine sources (vLLM 0.6 to 0.33, SGLang 0.5, TGI's `validation.rs`,
llama.cpp) and public issue threads, November 2026.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache


class About(Enum):
    """The size that an error message is about, and the limit that the message compares the size with."""

    SUM = auto()  # prompt and response together, with the window
    PROMPT = auto()  # the prompt alone, with the window
    INPUT = auto()  # the prompt alone, with a limit for prompts from which the window is not known
    ANSWER = auto()  # the requested limit alone, with the window
    OUTPUT = auto()  # the requested limit alone, with the most tokens that the model generates


@dataclass(frozen=True, slots=True)
class Signature:
    """One form of the message.

    The pattern is `text` with its placeholders expanded to numbers, which are its groups:
    - `W`: the window.
    - `P` and `P2`: tokens of the prompt.
    - `C`: tokens requested for the response.
    - `T`: the tokens of the prompt and the response together.
    - `D`: the tokens beyond the window.
    - `CAP`: the most tokens of a response. `END` is that number plus one.

    `LB` matches if `P` is only a lower bound. `approximate` is true if the vendor's count of the prompt is an estimate.
    """

    name: str
    about: About
    text: str
    approximate: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern. It is compiled by `compile_signatures`, or when the first error is read before that."""
        return _compiled(self.text)


_PLACEHOLDER = re.compile(r"(?<!\?P)<([A-Z0-9]+|_)>")
# With commas between thousands, or without.
_NUMBER = "(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,18})"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which `<W>` is a number in the group W, and `<_>` a number that is not used."""
    expanded = _PLACEHOLDER.sub(lambda found: _NUMBER if found[1] == "_" else f"(?P<{found[1]}>{_NUMBER})", pattern)
    return re.compile(expanded, re.IGNORECASE | re.DOTALL)


_WINDOW = r"maximum context length is <W> tokens"
_ROWS: tuple[tuple[str, About, str], ...] = (
    # OpenAI, Azure, DeepSeek, vLLM to 0.10. Functions are counted separately if there are any.
    (
        "openai_sum",
        About.SUM,
        _WINDOW + r"[.,] however,? you requested <_> tokens \(<P> in (?:your prompt|the messages|the prompt)[,;] "
        r"(?:<P2> in the functions, and )?<C> (?:in|for) the completion\)",
    ),
    ("openai_messages", About.PROMPT, _WINDOW + r"\. However, your messages .{0,40}?resulted in <P> tokens"),
    ("openai_window", About.PROMPT, r"input exceeds the context window of this model"),
    # vLLM from 0.11. From 0.18 "at least N" is window + 1 - max_tokens, independent of the prompt's size.
    ("vllm_input", About.PROMPT, _WINDOW + r"\. However, your request has <P> input tokens"),
    (
        "vllm_max_tokens",
        About.SUM,
        r"is too large: <C>\. This \S+ " + _WINDOW + r" and your request has <P> input tokens",
    ),
    (
        "vllm_sum",
        About.SUM,
        _WINDOW
        + r"\. However, you requested <C> output tokens and your prompt contains (?P<LB>at least )?<P> input tokens",
    ),
    ("vllm_prompt", About.PROMPT, _WINDOW + r"\. However, your prompt contains (?P<LB>at least )?<P> input tokens"),
    (
        "vllm_characters",
        About.SUM,
        rf"(?:{_WINDOW}\. However, you requested <C> output tokens and your prompt )?"
        r"contains <_> characters \(more than",
    ),
    ("vllm_answer", About.ANSWER, r"max_tokens=<C> cannot be greater than max_model_len=<W>"),
    ("vllm_engine", About.PROMPT, r"prompt \(length <P>\) is longer than the maximum model length of <W>"),
    # SGLang, and Together and Venice, which use it.
    (
        "sglang_sum",
        About.SUM,
        r"maximum context length of <W> tokens\. You requested a total of <_> tokens: "
        r"<P> tokens from the input.{0,20}? and <C> tokens",
    ),
    ("sglang_input", About.PROMPT, r"input \(<P> tokens\) is longer than the \S+ context length \(<W> tokens\)"),
    # TGI, and formerly Together. The figure of the response is ignored, because TGI caps the figure before it reports
    # it.
    ("tgi_sum", About.SUM, r"`inputs` tokens \+ `max_new_tokens` must be <= <W>\. Given: <P>"),
    ("tgi_inputs", About.INPUT, r"`inputs` must have less than <_> tokens\. Given: <P>"),
    ("anthropic_sum", About.SUM, r"input length and `?max_tokens`? exceed context limit: <P> \+ <C> > <W>"),
    ("anthropic_prompt", About.PROMPT, r"prompt is too long: <P> tokens > <W> maximum"),
    (
        "gemini",
        About.INPUT,
        r"input token count (?:\(?<P>\)? )?exceeds the maximum number of tokens allowed(?: \(?<_>\)?)?",
    ),
    ("vertex", About.INPUT, r"input token count is <P> but (?:the )?model only supports up to <_>"),
    ("ollama_cloud", About.PROMPT, r"prompt is too long: <P>, model maximum context length: <W>"),
    (
        "ollama",
        About.PROMPT,
        r"(?:prompt is longer than|input length exceeds) the context length"
        r"|prompt too long; exceeded (?:max )?context length by <_>",
    ),
    ("mistral", About.PROMPT, r"Prompt contains <P> tokens.{0,40}?too large for model with <W> maximum context length"),
    ("cohere_size", About.PROMPT, r"size limit exceeded by <D> tokens(?:.{0,80}?limit for this model is <W> tokens)?"),
    ("cohere_sum", About.SUM, r"\(prompt and prediction\) cannot exceed <W> - received <T>"),
    ("cohere_prompt", About.INPUT, r"tokens in the prompt cannot exceed <_> - received <P>"),
    ("xai", About.INPUT, r"maximum prompt length is <_> but the request contains <P> tokens"),
    ("cerebras", About.SUM, r"length of the messages or completion\. Current length is <P> while limit is <W>"),
    (
        "openrouter",
        About.SUM,
        _WINDOW + r"\. However, you requested about <_> tokens \(<P> of text input(?:, <P2> of \w+ input)?"
        r"(?:, <C> in the output)?\)",
    ),
    ("llamacpp", About.PROMPT, r"request (?:\(<P> tokens\) )?exceeds the available context size(?: \(<W> tokens\))?"),
    (
        "lm_studio",
        About.PROMPT,
        r"keep the first <P> tokens when context the overflows.{0,80}?context length of only <W> tokens",
    ),
    ("lm_studio_keep", About.PROMPT, r"tokens to keep from the initial prompt is greater than the context length"),
    ("moonshot", About.SUM, r"exceeded model token limit: <W> \(requested: <T>\)"),
    ("dashscope_input", About.INPUT, r"Range of input length should be \[[0-9]+, ?<_>\]"),
    ("zhipu", About.PROMPT, r"Prompt exceeds max length|Prompt 超长"),
    ("github", About.INPUT, r"Request body too large for .{1,80} model\. Max size: <_> tokens"),
    # Bedrock, AI21, Replicate. The lengths of `maxLength` are characters.
    ("too_long", About.PROMPT, r"Input is too long|prompt has too many tokens"),
    (
        "bedrock_tokens",
        About.INPUT,
        r"Too many input tokens(?:\. Max input tokens: <_>, request input token count: <P>)?",
    ),
    ("bedrock_maximum", About.INPUT, r"prompt tokens \(<P>\) exceed model maximum \(<_>\)"),
    ("bedrock_characters", About.INPUT, r"expected maxLength: <_>"),
    ("watsonx", About.PROMPT, r"number of input tokens <P> cannot exceed the total tokens limit <W>"),
    ("triton", About.INPUT, r"Prompt length \(<P>\) exceeds maximum (?:input|sequence) length \(<_>\)"),
    ("copilot", About.INPUT, r"prompt token count of <P> exceeds the limit of <_>"),
    (
        "input_length",  # Poolside, DeepInfra, engines behind gateways
        About.INPUT,
        r"input length \(?<P>\)? exceeds (?:the )?(?:model\S* )?maximum (?:allowed )?(?:input|context) length",
    ),
    ("ds4", About.PROMPT, r"prompt has <P> tokens, but the configured context size is <W>"),
    ("minimax", About.SUM, r"context window exceeds limit"),
    # The most tokens of a response.
    ("openai_cap", About.OUTPUT, r"is too large: <C>\. This model supports at most <CAP> \w+ tokens"),
    ("openai_value", About.OUTPUT, r"tokens'?: integer above maximum value\. Expected a value <= <CAP>"),
    ("anthropic_cap", About.OUTPUT, r"<C> > <CAP>, which is the maximum allowed number of output tokens"),
    ("bedrock_cap", About.OUTPUT, r"maximum tokens you requested exceeds? the model limit of <CAP>"),
    (
        "gemini_cap",  # other fields have the same message
        About.OUTPUT,
        r"max_?(?:output_?)?tokens\b.{0,80}?supported range is from [0-9]+ \(inclusive\) to <END> \(exclusive\)",
    ),
    ("range_cap", About.OUTPUT, r"range of max_tokens (?:should be|is) \[[0-9]+, ?<CAP>\]"),  # DashScope, DeepSeek
    (
        "cohere_cap",  # and Groq
        About.OUTPUT,
        r"max[_ ](?:completion[_ ])?tokens`? must be less than or equal to `?<CAP>",
    ),
    ("databricks_cap", About.OUTPUT, r"max_tokens \(<C>\) cannot exceed <CAP>"),
)
_ESTIMATES = frozenset({"openrouter"})

_LAST: tuple[tuple[str, About, str], ...] = (
    # Groq's whole message; others end a longer message with it.
    ("groq", About.SUM, r"reduce the length of the messages or completion"),
    ("any_prompt", About.PROMPT, r"prompt[_ ](?:is[_ ])?too[_ ]long"),
    # A message that refuses the field `context_length_exceeded_behavior` is not about a window.
    (
        "any",
        About.SUM,
        r"context[_ ]length[_ ]exceeded(?!_behavior)|maximum (?:context|model) length|context length|too many tokens"
        r"|token limit exceeded|exceeds? .{0,40}?context (?:window|size|limit)",
    ),
)

SIGNATURES = tuple(Signature(name, about, text, name in _ESTIMATES) for name, about, text in _ROWS)
"""The messages of each vendor. No message matches two of them."""

CATCH_ALL = tuple(Signature(name, about, text) for name, about, text in _LAST)
"""Words that messages about the window have in common, for messages that are not listed. They are searched last."""

NOT_ABOUT_SIZE = re.compile(
    r"rate[_ ]limit|tokens per min|\bTPM\b|quota|too many requests|please wait before trying", re.IGNORECASE
)
"""Messages about a rate limit, which also mention too many tokens."""


def compile_signatures() -> None:
    """Compile the patterns of all forms, which takes 7 ms."""
    for signature in (*SIGNATURES, *CATCH_ALL):
        _compiled(signature.text)
