"""The dialects by name, as profiles refer to them."""

from collections.abc import Mapping

from providers.dialect import Dialect
from providers.dialects.anthropic.claude_on_vertex import AnthropicVertexDialect
from providers.dialects.anthropic.dialect import AnthropicDialect
from providers.dialects.bedrock.claude_on_bedrock import BedrockAnthropicDialect
from providers.dialects.bedrock.converse import BedrockDialect
from providers.dialects.bedrock.invoke import BedrockInvokeDialect
from providers.dialects.cohere.dialect import CohereDialect
from providers.dialects.gemini.dialect import GeminiDialect
from providers.dialects.llamacpp.dialect import LlamaCppDialect
from providers.dialects.llm_engine.dialect import LlmEngineDialect
from providers.dialects.ollama.dialect import OllamaDialect
from providers.dialects.openai.dialect import OpenAIDialect
from providers.dialects.replicate.dialect import ReplicateDialect
from providers.dialects.sagemaker.dialect import OPENAI_CONTAINER, TGI_CONTAINER, SageMakerDialect
from providers.dialects.sglang.dialect import SglangDialect
from providers.dialects.tgi.dialect import TgiDialect
from providers.dialects.triton.dialect import TritonDialect
from providers.dialects.watsonx.dialect import WatsonxDialect

DIALECTS: Mapping[str, Dialect] = {
    "anthropic": AnthropicDialect(),
    "anthropic_vertex": AnthropicVertexDialect(),
    "bedrock": BedrockDialect(),
    "bedrock_anthropic": BedrockAnthropicDialect(),
    "bedrock_invoke": BedrockInvokeDialect(),
    "cohere": CohereDialect(),
    "gemini": GeminiDialect(),
    "llamacpp": LlamaCppDialect(),
    "llm_engine": LlmEngineDialect(),
    "ollama": OllamaDialect(),
    "openai": OpenAIDialect(),
    "replicate": ReplicateDialect(),
    "sagemaker": SageMakerDialect(OPENAI_CONTAINER),
    "sagemaker_tgi": SageMakerDialect(TGI_CONTAINER),
    "sglang": SglangDialect(),
    "tgi": TgiDialect(),
    "triton": TritonDialect(),
    "watsonx": WatsonxDialect(),
}
