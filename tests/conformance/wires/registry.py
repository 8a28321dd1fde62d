"""The dialects that fakes speak, by name. A dialect without a line here fails the walk of its profiles."""

from collections.abc import Mapping

from tests.conformance.wires.anthropic import ANTHROPIC
from tests.conformance.wires.anthropic_vertex import ANTHROPIC_VERTEX
from tests.conformance.wires.gemini import GEMINI
from tests.conformance.wires.llm_engine import LLM_ENGINE
from tests.conformance.wires.openai import OPENAI
from tests.conformance.wires.triton import TRITON
from tests.conformance.wires.wire import Spoken

SPOKEN: Mapping[str, Spoken] = {
    "anthropic": ANTHROPIC,
    "anthropic_vertex": ANTHROPIC_VERTEX,
    "gemini": GEMINI,
    "llm_engine": LLM_ENGINE,
    "openai": OPENAI,
    "triton": TRITON,
}
