"""Writers of single fields that several vendors' own APIs spell alike."""

from providers.dialects.shared.request_body import FieldWriter, RequestBody
from providers.request_fields import STOP_STRING, is_neutral
from providers.unified_request import ChatPrompt, LogprobsWanted

CHECKED_FIELDS = {False: frozenset[str](), True: frozenset({"guided", "response_format"})}
"""The fields whose effect the gateway checks in the answer, by the profile's `verifies`."""


def keep_stop(draft: RequestBody, value: object) -> None:
    """Note that the gateway keeps the stop string in the text, where there are stop strings."""
    if value and draft.params.get("stop"):
        draft.emulated.append(STOP_STRING)


def check_images(draft: RequestBody, value: object) -> None:
    """Check `images`, which have become parts of the prompt's message. Raises Refusal beside a chat."""
    if (cell := draft.table["images"]).refused:
        raise draft.unsupported("images", cell.how)
    if isinstance(draft.request.prompt, ChatPrompt):
        raise draft.unsupported("images", "in a chat put images into the messages")


def above_zero(name: str, path: str, most: float | None = None) -> FieldWriter:
    """Return a writer of a number above 0 and at most `most`."""
    limit = "" if most is None else f" and at most {most:g}"

    def write(draft: RequestBody, value: object) -> None:
        if not isinstance(value, int | float) or not value > 0 or (most is not None and value > most):
            raise draft.invalid(name, f"must be above 0{limit}")
        draft.put(path, value)

    return write


def neutral_as(name: str, path: str, off: int) -> FieldWriter:
    """Return a writer that sends `off` for a neutral value: left out, the server's own default would apply."""
    return lambda draft, value: draft.put(path, off if is_neutral(name, value) else value)


def sampled(put: FieldWriter, switch: str = "", on: object = None) -> FieldWriter:
    """Return a writer of a sampling setting, which a temperature of 0 leaves out.

    `switch` is the path of the member that turns sampling on by the value `on`, where the engine has one.
    """

    def write(draft: RequestBody, value: object) -> None:
        if draft.params.get("temperature") != 0:
            put(draft, value)
            if switch:
                draft.put(switch, on)

    return write


def check_logprobs(draft: RequestBody, value: object, most: int | None = None) -> LogprobsWanted:
    """Return the value of `logprobs`. Raises Refusal for more than `most` alternatives."""
    if not isinstance(value, LogprobsWanted):
        raise TypeError(f"logprobs holds {type(value).__name__}")
    if most is not None and value.top > most:
        raise draft.invalid("logprobs", f"lists at most {most} tokens")
    return value
