"""The dialects by name, as profiles refer to them."""

from collections.abc import Mapping

from providers.dialect import Dialect
from providers.dialects.anthropic import AnthropicDialect
from providers.dialects.anthropic_vertex import AnthropicVertexDialect
from providers.dialects.bedrock import BedrockDialect
from providers.dialects.bedrock_anthropic import BedrockAnthropicDialect
from providers.dialects.bedrock_invoke import BedrockInvokeDialect
from providers.dialects.cohere import CohereDialect
from providers.dialects.gemini import GeminiDialect
from providers.dialects.llamacpp import LlamaCppDialect
from providers.dialects.llm_engine import LlmEngineDialect
from providers.dialects.ollama import OllamaDialect
from providers.dialects.openai import OpenAIDialect
from providers.dialects.replicate import ReplicateDialect
from providers.dialects.sagemaker import OPENAI_CONTAINER, TGI_CONTAINER, SageMakerDialect
from providers.dialects.sglang import SglangDialect
from providers.dialects.tgi import TgiDialect
from providers.dialects.triton import TritonDialect
from providers.dialects.watsonx import WatsonxDialect

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
