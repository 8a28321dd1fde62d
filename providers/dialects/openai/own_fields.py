"""Fields outside the unified request on the OpenAI family's wire: they go to the vendor, which answers for them.

Sources, November 2026: @openrouter/sdk 1.3.19 and OpenAI's guide "Prompt caching" for `cache_control` and
`prompt_cache_options` at the top of a request.
"""

from collections.abc import Collection
from typing import Final

from providers.dialects.openai.message_parts import MARKERS
from providers.dialects.shared.request_body import RequestBody
from providers.failure import Refusal
from providers.json_types import merged
from providers.profile import Profile

_OF_CACHES: Final = MARKERS | {"prompt_cache_options"}
"""Settings of prompt caches; they promise nothing about the answer."""


def put_own_fields(draft: RequestBody, profile: Profile, reserved: Collection[str]) -> None:
    """Write the fields that the unified request does not know.

    Settings of caches are left out where the vendor has none, and noted. An object goes into the profile's own member
    of that name. Raises Refusal where the vendor takes no such fields, and for one whose name is `reserved` or in the
    body already.
    """
    for name, value in (draft.request.unknown or {}).items():
        if name in _OF_CACHES and name not in profile.takes:
            draft.dropped.append(name)
            continue
        if (cell := draft.table["unknown"]).refused:
            raise draft.unsupported(name, cell.how)
        standing = draft.body.get(name)
        if name in profile.body and isinstance(standing, dict) and isinstance(value, dict):
            draft.body[name] = merged(standing, value)
        elif name in draft.body or name in reserved:
            message = f"'{name}' goes to {draft.target.name} for another field of the request already."
            raise Refusal(name, message, "conflicting_parameters")
        else:
            draft.body[name] = value
