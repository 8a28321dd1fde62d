"""The dialects by name, as profiles refer to them.

A dialect is imported when a table first has a vendor that speaks it: all of them take a fifth of a start's time.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from providers.dialect import Dialect

_PLACES: Final[Mapping[str, tuple[str, str]]] = {
    "anthropic": ("anthropic.dialect", "AnthropicDialect"),
    "anthropic_vertex": ("anthropic.claude_on_vertex", "AnthropicVertexDialect"),
    "bedrock": ("bedrock.converse", "BedrockDialect"),
    "bedrock_anthropic": ("bedrock.claude_on_bedrock", "BedrockAnthropicDialect"),
    "bedrock_invoke": ("bedrock.invoke", "BedrockInvokeDialect"),
    "cohere": ("cohere.dialect", "CohereDialect"),
    "gemini": ("gemini.dialect", "GeminiDialect"),
    "llamacpp": ("llamacpp.dialect", "LlamaCppDialect"),
    "llm_engine": ("llm_engine.dialect", "LlmEngineDialect"),
    "ollama": ("ollama.dialect", "OllamaDialect"),
    "openai": ("openai.dialect", "OpenAIDialect"),
    "replicate": ("replicate.dialect", "ReplicateDialect"),
    "sagemaker": ("sagemaker.dialect", "openai_container"),
    "sagemaker_tgi": ("sagemaker.dialect", "tgi_container"),
    "sglang": ("sglang.dialect", "SglangDialect"),
    "tgi": ("tgi.dialect", "TgiDialect"),
    "triton": ("triton.dialect", "TritonDialect"),
    "watsonx": ("watsonx.dialect", "WatsonxDialect"),
}
"""The module below this package, and what makes the dialect there."""


class _Dialects(Mapping[str, Dialect]):
    """The dialects, each made once."""

    def __init__(self) -> None:
        self._made: dict[str, Dialect] = {}

    def __getitem__(self, name: str) -> Dialect:
        if name not in self._made:
            module, maker = _PLACES[name]
            self._made[name] = getattr(import_module(f"providers.dialects.{module}"), maker)()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


DIALECTS: Final[Mapping[str, Dialect]] = _Dialects()
