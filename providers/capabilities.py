"""What becomes of each field on a deployment: the vendor honours it, the gateway makes its effect, or it is refused.

The single source of these decisions: encoders refuse by a table of these cells, `shape` divides a request by it,
`dragoman vendors` prints it, and the conformance walk visits every cell. Never a vendor's name, and never a request's
values beyond what tells one feature of a field from another.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from providers.unified import Guided, Operation


class Support(StrEnum):
    """The three things that can become of a field."""

    NATIVE = "native"
    EMULATED = "emulated"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Cell:
    """One decision. `how` says by what means a field is emulated, or why it is refused; for people."""

    support: Support
    how: str = ""

    @property
    def native(self) -> bool:
        """Whether the vendor honours it by itself."""
        return self.support is Support.NATIVE

    @property
    def emulated(self) -> bool:
        """Whether the gateway has a part in it."""
        return self.support is Support.EMULATED

    @property
    def refused(self) -> bool:
        """Whether it is an error there."""
        return self.support is Support.REFUSED


NATIVE = Cell(Support.NATIVE)
REFUSED = Cell(Support.REFUSED)


def emulated(how: str) -> Cell:
    """The gateway makes the effect, in this way."""
    return Cell(Support.EMULATED, how)


def refused(why: str) -> Cell:
    """It cannot be had there, for this reason."""
    return Cell(Support.REFUSED, why)


@dataclass(frozen=True, slots=True)
class Feature:
    """A field, or a use of a field that vendors treat differently from its other uses.

    `name` is the field's, with the use behind a dot; `field` what an error calls it; `operations` those whose clients
    can ask for it.
    """

    name: str
    field: str
    operations: tuple[Operation, ...]


_BOTH = (Operation.COMPLETIONS, Operation.CHAT)
_TEXT = (Operation.COMPLETIONS,)
_USES: Mapping[str, tuple[Operation, ...]] = {
    "prompt": _TEXT,
    "prompt.batch": _TEXT,
    "prompt.tokens": _TEXT,
    "prompt.token_batch": _TEXT,
    "messages": (Operation.CHAT,),
    "max_tokens": _BOTH,
    "temperature": _BOTH,
    "top_p": _BOTH,
    "top_k": _BOTH,
    "min_p": _BOTH,
    "typical_p": _BOTH,
    "repetition_penalty": _BOTH,
    "presence_penalty": _BOTH,
    "frequency_penalty": _BOTH,
    "mirostat_lr": _BOTH,
    "mirostat_target": _BOTH,
    "ignore_eos": _BOTH,
    "n": _BOTH,
    "best_of": _BOTH,
    "stop": _BOTH,
    "stop.many": _BOTH,
    "stop.blank": _BOTH,
    "include_stop_str_in_output": _BOTH,
    "logprobs": _BOTH,
    "echo": _BOTH,
    "echo.logprobs": _BOTH,
    "echo_last": _BOTH,
    "suffix": _BOTH,
    "logit_bias": _BOTH,
    "seed": _BOTH,
    "user": _BOTH,
    "images": _TEXT,
    "response_format.json_object": _BOTH,
    "response_format.json_schema": _BOTH,
    "response_format.grammar": _BOTH,
    "response_format.structural_tag": _BOTH,
    "guided_json": _BOTH,
    "guided_regex": _BOTH,
    "guided_choice": _BOTH,
    "guided_grammar": _BOTH,
    "tools": _BOTH,
    "tool_choice.none": _BOTH,
    "tool_choice.required": _BOTH,
    "tool_choice.named": _BOTH,
    "parallel_tool_calls": _BOTH,
    "audio": _BOTH,
    "modalities": _BOTH,
    "prediction": _BOTH,
    "prompt_cache_key": _BOTH,
    "prompt_cache_isolation_key": _BOTH,
    "metadata": _BOTH,
    "service_tier": _BOTH,
    "reasoning_effort": _BOTH,
    "reasoning_history": _BOTH,
    "thinking": _BOTH,
    "raw_output": _BOTH,
    "return_token_ids": _BOTH,
    "perf_metrics_in_response": _BOTH,
    "speculation": _BOTH,
    "context_length_exceeded_behavior.truncate": _BOTH,
    "context_length_exceeded_behavior.error": _BOTH,
    "stream": _BOTH,
    "stream_options": _BOTH,
    "inference_timeout": _BOTH,
    "inference_extra_params": _BOTH,
    "inference_extra_headers": _BOTH,
    "unknown": _BOTH,
}

FEATURES: Mapping[str, Feature] = {
    name: Feature(name, name.partition(".")[0], operations) for name, operations in _USES.items()
}
"""Every feature of the unified request, in the order of its documentation. `unknown` stands for fields outside it."""


@dataclass(frozen=True, slots=True, eq=False)
class Capabilities:
    """What a deployment does with every feature, as it holds for the endpoint that a request goes to.

    `most_stops` is how many stop strings it takes (None = any number), `blank_stops` whether one of them may be blank.
    `verifies` says that its engine may ignore a constraint in silence, so that the gateway holds the answer against it.
    `counts` holds the values of `context_length_exceeded_behavior` for which the prompt must be counted first.
    `watched` are the params that may need the gateway's part, so that a request without them costs nothing.
    """

    cells: Mapping[str, Cell]
    most_stops: int | None = 4
    blank_stops: bool = True
    verifies: bool = False
    counts: frozenset[str] = frozenset()
    watched: frozenset[str] = frozenset()

    def __getitem__(self, feature: str) -> Cell:
        return self.cells[feature]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cells)


ALWAYS: Mapping[str, Cell] = {
    name: NATIVE
    for name in (
        "stream",
        "stream_options",
        "inference_timeout",
        "inference_extra_params",
        "inference_extra_headers",
    )
}
"""What no vendor has a say in: the gateway's own clock and accounts, and what goes through untouched."""

FAN_OUT = emulated("one call each")
RANKED = emulated("candidates ranked by their mean log probability")
PREFIXED = emulated("the prompt is put before the text")
SCANNED = emulated("found in the text, which ends there")
APPENDED = emulated("the stop that matched is put behind the text")
WRAPPED = emulated("one message of the user")
IN_MESSAGE = emulated("parts of the message")
RESENT = emulated("asked again with as many tokens as fit")
COUNTED = emulated("the prompt is counted first")


def compiled(known: Collection[str], decided: Mapping[str, Cell]) -> dict[str, Cell]:
    """A cell for every feature: as decided, else native where the field is known, else refused."""
    cells = {name: NATIVE if name in known else REFUSED for name in FEATURES}
    return {**cells, **ALWAYS, **decided}


ONE_CHAT: Mapping[str, Cell] = {
    "prompt": WRAPPED,
    "prompt.batch": FAN_OUT,
    "prompt.tokens": refused("it is asked by chat, so prompts must be text"),
    "prompt.token_batch": refused("it is asked by chat, so prompts must be text"),
    "messages": NATIVE,
    "images": IN_MESSAGE,
    "n": FAN_OUT,
    "echo.logprobs": refused("it does not tell the log probabilities of a prompt"),
    "unknown": refused("the vendor refuses fields it does not know"),
}
"""What holds where every call is one conversation with one answer."""


def counted_first(cells: Mapping[str, Cell]) -> frozenset[str]:
    """The behaviours that a table honours only by counting the prompt."""
    behaviours = ("truncate", "error")
    return frozenset(word for word in behaviours if cells[f"context_length_exceeded_behavior.{word}"] == COUNTED)


def feature_of(name: str, value: object) -> str:
    """The feature that a param with this value asks for."""
    match name, value:
        case "guided", Guided():
            return value.field
        case "response_format", dict():
            return f"response_format.{_format_kind(value)}"
        case "tool_choice", "auto":
            return "tools"
        case "tool_choice", _:
            return f"tool_choice.{value if isinstance(value, str) else 'named'}"
        case "context_length_exceeded_behavior", _:
            return f"{name}.{value}"
        case _:
            return name


def _format_kind(value: Mapping[str, object]) -> str:
    """A JSON mode with a schema is a schema; of a kind that nobody here knows, the vendor has the word."""
    kind = value.get("type")
    known = f"response_format.{kind}" in FEATURES
    return "json_schema" if isinstance(value.get("schema"), dict) or not known else str(kind)
