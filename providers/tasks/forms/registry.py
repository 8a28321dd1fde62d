"""The wire forms by the names that profiles use."""

from collections.abc import Mapping

from providers.tasks.forms.bedrock import BedrockRerank, TitanEmbeddings
from providers.tasks.forms.cohere import BedrockCohereEmbeddings, CohereEmbeddings
from providers.tasks.forms.google import GeminiEmbeddings, VertexContentEmbeddings, VertexPredictEmbeddings
from providers.tasks.forms.nomic import NomicEmbeddings
from providers.tasks.forms.ollama import OllamaEmbeddings
from providers.tasks.forms.openai import OpenAIEmbeddings
from providers.tasks.forms.ranked import RankedRerank
from providers.tasks.forms.sglang import SglangRerank
from providers.tasks.forms.tei import TeiEmbeddings, TeiRerank
from providers.tasks.forms.watsonx import WatsonxEmbeddings, WatsonxRerank
from providers.tasks.wire_form import EmbeddingsForm, RerankForm

EMBEDDINGS_FORMS: Mapping[str, EmbeddingsForm] = {
    "bedrock_cohere": BedrockCohereEmbeddings(),
    "bedrock_titan": TitanEmbeddings(),
    "cohere": CohereEmbeddings(),
    "gemini": GeminiEmbeddings(),
    "nomic": NomicEmbeddings(),
    "ollama": OllamaEmbeddings(),
    "openai": OpenAIEmbeddings(),
    "tei": TeiEmbeddings(),
    "vertex": VertexPredictEmbeddings(),
    "vertex_content": VertexContentEmbeddings(),
    "watsonx": WatsonxEmbeddings(),
}

RERANK_FORMS: Mapping[str, RerankForm] = {
    "bedrock": BedrockRerank(),
    "ranked": RankedRerank(),
    "sglang": SglangRerank(),
    "tei": TeiRerank(),
    "watsonx": WatsonxRerank(),
}
