"""The dialects by the names that profiles use.

A dialect is imported when a configuration first has a vendor that speaks it. Importing all of them would take a fifth
of the start-up time.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from providers.dialect import Dialect


def _anthropic() -> Dialect:
    from providers.dialects.anthropic.dialect import AnthropicDialect

    return AnthropicDialect()


def _anthropic_vertex() -> Dialect:
    from providers.dialects.anthropic.claude_on_vertex import AnthropicVertexDialect

    return AnthropicVertexDialect()


def _bedrock() -> Dialect:
    from providers.dialects.bedrock.converse import BedrockDialect

    return BedrockDialect()


def _bedrock_anthropic() -> Dialect:
    from providers.dialects.bedrock.claude_on_bedrock import BedrockAnthropicDialect

    return BedrockAnthropicDialect()


def _bedrock_invoke() -> Dialect:
    from providers.dialects.bedrock.invoke import BedrockInvokeDialect

    return BedrockInvokeDialect()


def _cohere() -> Dialect:
    from providers.dialects.cohere.dialect import CohereDialect

    return CohereDialect()


def _gemini() -> Dialect:
    from providers.dialects.gemini.dialect import GeminiDialect

    return GeminiDialect()


def _llamacpp() -> Dialect:
    from providers.dialects.llamacpp.dialect import LlamaCppDialect

    return LlamaCppDialect()


def _llm_engine() -> Dialect:
    from providers.dialects.llm_engine.dialect import LlmEngineDialect

    return LlmEngineDialect()


def _ollama() -> Dialect:
    from providers.dialects.ollama.dialect import OllamaDialect

    return OllamaDialect()


def _openai() -> Dialect:
    from providers.dialects.openai.dialect import OpenAIDialect

    return OpenAIDialect()


def _replicate() -> Dialect:
    from providers.dialects.replicate.dialect import ReplicateDialect

    return ReplicateDialect()


def _sagemaker() -> Dialect:
    from providers.dialects.sagemaker.dialect import openai_container

    return openai_container()


def _sagemaker_tgi() -> Dialect:
    from providers.dialects.sagemaker.dialect import tgi_container

    return tgi_container()


def _sglang() -> Dialect:
    from providers.dialects.sglang.dialect import SglangDialect

    return SglangDialect()


def _tgi() -> Dialect:
    from providers.dialects.tgi.dialect import TgiDialect

    return TgiDialect()


def _triton() -> Dialect:
    from providers.dialects.triton.dialect import TritonDialect

    return TritonDialect()


def _watsonx() -> Dialect:
    from providers.dialects.watsonx.dialect import WatsonxDialect

    return WatsonxDialect()


_MAKERS: Final[Mapping[str, Callable[[], Dialect]]] = {
    "anthropic": _anthropic,
    "anthropic_vertex": _anthropic_vertex,
    "bedrock": _bedrock,
    "bedrock_anthropic": _bedrock_anthropic,
    "bedrock_invoke": _bedrock_invoke,
    "cohere": _cohere,
    "gemini": _gemini,
    "llamacpp": _llamacpp,
    "llm_engine": _llm_engine,
    "ollama": _ollama,
    "openai": _openai,
    "replicate": _replicate,
    "sagemaker": _sagemaker,
    "sagemaker_tgi": _sagemaker_tgi,
    "sglang": _sglang,
    "tgi": _tgi,
    "triton": _triton,
    "watsonx": _watsonx,
}


class _Dialects(Mapping[str, Dialect]):
    """The dialects by name. Each is imported and created once, when it is first read."""

    def __init__(self) -> None:
        self._made: dict[str, Dialect] = {}

    def __getitem__(self, name: str) -> Dialect:
        if name not in self._made:
            self._made[name] = _MAKERS[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_MAKERS)

    def __len__(self) -> int:
        return len(_MAKERS)


DIALECTS: Final[Mapping[str, Dialect]] = _Dialects()
