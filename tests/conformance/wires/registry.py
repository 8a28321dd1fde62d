"""The dialects that fakes speak, by name. A dialect without a line here fails the walk of its profiles."""

from collections.abc import Mapping

from tests.conformance.wires.anthropic import ANTHROPIC
from tests.conformance.wires.anthropic_vertex import ANTHROPIC_VERTEX
from tests.conformance.wires.bedrock import BEDROCK
from tests.conformance.wires.bedrock_invoke import BEDROCK_ANTHROPIC, BEDROCK_INVOKE
from tests.conformance.wires.cohere import COHERE
from tests.conformance.wires.gemini import GEMINI
from tests.conformance.wires.llamacpp import LLAMACPP
from tests.conformance.wires.llm_engine import LLM_ENGINE
from tests.conformance.wires.ollama import OLLAMA
from tests.conformance.wires.openai import OPENAI
from tests.conformance.wires.replicate import REPLICATE
from tests.conformance.wires.sagemaker import SAGEMAKER, SAGEMAKER_TGI
from tests.conformance.wires.sglang import SGLANG
from tests.conformance.wires.tgi import TGI
from tests.conformance.wires.triton import TRITON
from tests.conformance.wires.watsonx import WATSONX
from tests.conformance.wires.wire import Spoken

SPOKEN: Mapping[str, Spoken] = {
    "anthropic": ANTHROPIC,
    "anthropic_vertex": ANTHROPIC_VERTEX,
    "bedrock": BEDROCK,
    "bedrock_anthropic": BEDROCK_ANTHROPIC,
    "bedrock_invoke": BEDROCK_INVOKE,
    "cohere": COHERE,
    "gemini": GEMINI,
    "llamacpp": LLAMACPP,
    "llm_engine": LLM_ENGINE,
    "ollama": OLLAMA,
    "openai": OPENAI,
    "replicate": REPLICATE,
    "sagemaker": SAGEMAKER,
    "sagemaker_tgi": SAGEMAKER_TGI,
    "sglang": SGLANG,
    "tgi": TGI,
    "triton": TRITON,
    "watsonx": WATSONX,
}
