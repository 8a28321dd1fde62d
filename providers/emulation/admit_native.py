"""Admits a call in the client's own API, which is neither translated nor emulated, to a target that speaks it."""

from providers.client_extras.native_members import check_native
from providers.request_fields import WINDOW
from providers.target import Target
from providers.unified_request import UnifiedRequest


def admit_native(request: UnifiedRequest, target: Target) -> bool:
    """Return whether the prompt must be counted and compared with the window before it is sent. Raises Refusal for what
    the target may not be sent.

    At the window's end a call in the client's own API ends as the vendor ends it, unless the client says how it is to.
    """
    if request.native is not None:
        check_native(request.native, target)
    if WINDOW in request.injected:
        return False
    counts = target.dialect.capabilities(request, target).counts
    return bool(counts) and request.params.get(WINDOW) in counts
