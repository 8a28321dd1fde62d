"""Searches of the web that another vendor made, for the items that the Responses API has of them.

Only a client that offered a tool that the vendor runs gets them: for any other client they do not belong to the
conversation.

Sources: openai 3.54.0 type `ResponseFunctionWebSearch`; `anthropic` 2.12.0 type `ServerToolUseBlock`, November 2026.
"""

from typing import Final

from providers.completion import Extras
from providers.hosted_tools.hosted_tool import is_hosted
from providers.unified_request import UnifiedRequest

_BLOCKS: Final = "content_blocks"
"""The field of the unified message with Anthropic's blocks that have no common form."""


def shows_searches(request: UnifiedRequest) -> bool:
    """Return whether the client offered a tool that the vendor runs."""
    return any([is_hosted(tool) for tool in request.params.get("tools", ())])


def queries_in(extras: Extras) -> list[str]:
    """Return the queries of the vendor's searches, in order."""
    listed = (extras.message or {}).get(_BLOCKS)
    found: list[str] = []
    for block in listed if isinstance(listed, list) else ():
        match block:
            case {"type": "server_tool_use", "name": "web_search", "input": {"query": str(query)}}:
                found.append(query)
            case _:
                pass
    return found
