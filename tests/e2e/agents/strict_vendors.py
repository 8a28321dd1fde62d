"""The fake vendors that check what the real ones check in an agent's conversation.

What is sent back is held against what was given: thinking must come back whole, first and signed; each result must
follow its call.
"""

from collections.abc import Mapping

from tests.e2e.agents.strict_claude import Anthropic, Bedrock
from tests.e2e.agents.strict_gemini import Gemini

VENDORS: Mapping[str, type[Anthropic] | type[Gemini] | type[Bedrock]] = {
    "anthropic/claude-sonnet-4-5": Anthropic,
    "gemini/gemini-3-flash-preview": Gemini,
    "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0": Bedrock,
}
"""The fakes, by the model that clients name."""
