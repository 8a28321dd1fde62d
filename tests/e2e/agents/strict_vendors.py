"""The fake vendors with the real vendors' checks of an agent's conversation.

The history in a request is compared with the vendor's earlier responses: reasoning must come back complete, first and
signed, and each result must follow its call.
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
