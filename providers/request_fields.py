"""The fields of the unified request, each with the facts that the parts of the gateway need.

`providers.unified_request.Params` types their values, and `proxy.surfaces.request.field_rules` checks them. Tests
compare both with this list.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final, get_args

from providers.unified_request import ContextBehavior, Operation

STOP_STRING: Final = "include_stop_str_in_output"
WINDOW: Final = "context_length_exceeded_behavior"
SEARCH: Final = "web_search_options"

_BOTH = (Operation.COMPLETIONS, Operation.CHAT)
_COMPLETIONS = (Operation.COMPLETIONS,)
_CHAT = (Operation.CHAT,)


class FieldClass(StrEnum):
    """How a field is treated if a vendor does not have it.

    A *binding* field is part of what the response promises: it is supported, emulated or refused, never left out. A
    *steering* field is refused unless `on_unsupported: drop` leaves it out. An *advisory* field promises nothing about
    the response: if a vendor does not have it, it is left out and named in `x-dragoman-dropped`.
    """

    BINDING = "binding"
    STEERING = "steering"
    ADVISORY = "advisory"


BINDING, STEERING, ADVISORY = FieldClass


@dataclass(frozen=True, slots=True)
class RequestField:
    """One field.

    `aliases` are other names that clients use for it. `uses` are the uses of the field that vendors treat differently;
    the empty string is the field as such. `operations` are the operations whose clients can send it. `neutral` returns
    whether a value is neutral, which means that it has no effect. A steering field is advisory with one of its
    `advisory_values`. If `by_gateway`, the gateway acts on the field itself, for every vendor. If `protected`,
    `inference_extra_params` may not set the field. If `keeps_form`, the field changes the generated content, but not
    which parts a response has.
    """

    name: str
    aliases: tuple[str, ...] = ()
    uses: tuple[str, ...] = ("",)
    operations: tuple[Operation, ...] = _BOTH
    neutral: Callable[[object], bool] | None = None
    field_class: FieldClass = STEERING
    advisory_values: tuple[str | bool, ...] = ()
    by_gateway: bool = False
    protected: bool = False
    keeps_form: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """The name of each use of the field: the field's own name, or `name.use`."""
        return tuple(f"{self.name}.{use}" if use else self.name for use in self.uses)


def _equals(*values: object) -> Callable[[object], bool]:
    return lambda value: value in values


def _empty(value: object) -> bool:
    return not value


def _no_images(value: object) -> bool:
    return isinstance(value, tuple) and not any(value)


_F = RequestField
REQUEST_FIELDS = (
    _F("model", uses=(), field_class=BINDING, protected=True),
    _F(
        "prompt",
        uses=("", "batch", "tokens", "token_batch"),
        operations=_COMPLETIONS,
        field_class=BINDING,
        protected=True,
    ),
    _F("messages", operations=_CHAT, field_class=BINDING, protected=True),
    _F("max_tokens", aliases=("max_completion_tokens", "max_new_tokens"), field_class=BINDING, keeps_form=True),
    _F("temperature", keeps_form=True),
    _F("top_p", neutral=_equals(1), keeps_form=True),
    _F("top_k", neutral=_equals(-1, 0), keeps_form=True),
    _F("min_p", neutral=_equals(0), keeps_form=True),
    _F("typical_p", neutral=_equals(1), keeps_form=True),
    _F("repetition_penalty", neutral=_equals(1), keeps_form=True),
    _F("presence_penalty", neutral=_equals(0), keeps_form=True),
    _F("frequency_penalty", neutral=_equals(0), keeps_form=True),
    _F("mirostat_lr"),
    _F("mirostat_target"),
    _F("ignore_eos", neutral=_equals(False)),
    _F("n", neutral=_equals(1), field_class=BINDING, protected=True),
    _F("best_of", neutral=_equals(0, 1), field_class=BINDING),
    _F(
        "stop",
        aliases=("stop_sequences",),
        uses=("", "many", "blank"),
        neutral=_empty,
        field_class=BINDING,
        keeps_form=True,
    ),
    _F(STOP_STRING, neutral=_equals(False)),
    _F("logprobs", aliases=("top_logprobs", "return_token_log_probs"), field_class=BINDING),
    _F("echo", uses=("", "logprobs"), neutral=_equals(False), field_class=BINDING),
    _F("echo_last", neutral=_equals(0)),
    _F("suffix", neutral=_empty),
    _F("logit_bias", neutral=_empty, keeps_form=True),
    _F("seed", keeps_form=True),
    _F("user", field_class=ADVISORY, keeps_form=True),
    _F("images", operations=_COMPLETIONS, neutral=_no_images, field_class=BINDING),
    _F(
        "response_format",
        uses=("json_object", "json_schema", "grammar", "structural_tag"),
        neutral=_equals({"type": "text"}),
        field_class=BINDING,
    ),
    _F("guided_json", aliases=("json_schema", "structured_outputs"), field_class=BINDING),
    _F("guided_regex", aliases=("regex",), field_class=BINDING),
    _F("guided_choice", aliases=("choice",), field_class=BINDING),
    _F("guided_grammar", aliases=("ebnf", "grammar"), field_class=BINDING),
    _F("tools", aliases=("functions",), neutral=_empty, field_class=BINDING),
    _F(
        "tool_choice",
        aliases=("function_call",),
        uses=("none", "required", "named"),
        neutral=_equals("none"),
        field_class=BINDING,
    ),
    _F(SEARCH, field_class=BINDING),
    _F("parallel_tool_calls", neutral=_equals(True)),
    _F("audio"),
    _F("modalities", neutral=_equals(["text"])),
    _F("prediction", field_class=ADVISORY),
    _F("prompt_cache_key", field_class=ADVISORY, keeps_form=True),
    _F("prompt_cache_isolation_key"),
    _F("metadata", field_class=ADVISORY, neutral=_empty, keeps_form=True),
    _F("prompt_cache_retention", field_class=ADVISORY, keeps_form=True),
    _F("safety_identifier", field_class=ADVISORY, keeps_form=True),
    _F("store", advisory_values=(False,), keeps_form=True),
    _F("service_tier", advisory_values=("auto", "default"), keeps_form=True),
    _F("reasoning_effort", aliases=("reasoning",), keeps_form=True),
    _F("verbosity", neutral=_equals("medium"), keeps_form=True),
    _F("reasoning_history"),
    _F("thinking", keeps_form=True),
    _F("raw_output", neutral=_equals(False)),
    _F("return_token_ids", neutral=_equals(False)),
    _F("perf_metrics_in_response", neutral=_equals(False)),
    _F("speculation", field_class=ADVISORY),
    _F(WINDOW, uses=get_args(ContextBehavior), keeps_form=True),
    _F("stream", by_gateway=True, protected=True),
    _F("stream_options", by_gateway=True, protected=True),
    _F("inference_timeout", by_gateway=True),
    _F("inference_extra_params", by_gateway=True, field_class=BINDING),
    _F("inference_extra_headers", by_gateway=True, field_class=BINDING),
)
"""Every field, in the order in which they are documented."""

PROMPT_FIELDS: Mapping[Operation, str] = {Operation.CHAT: "messages", Operation.COMPLETIONS: "prompt"}
"""The field that holds the prompt of each operation."""

NEVER_DROPPED = frozenset(each.name for each in REQUEST_FIELDS if each.field_class is BINDING)
"""The fields that `on_unsupported: drop` does not affect."""

PROTECTED_PARAMS = frozenset(each.name for each in REQUEST_FIELDS if each.protected)
"""The fields that `inference_extra_params` may not set."""

KEEP_FORM = frozenset(each.name for each in REQUEST_FIELDS if each.keeps_form)
"""The fields that change the generated content, but not which parts a response has."""

_NEUTRAL = {each.name: each.neutral for each in REQUEST_FIELDS if each.neutral is not None}


def is_neutral(field: str, value: object) -> bool:
    """Return whether `value` has no effect, so that a deployment without the field supports it by doing nothing.

    LangChain and vLLM's benchmark always send neutral values. If they were refused, both would fail.
    """
    test = _NEUTRAL.get(field)
    return test is not None and test(value)


ADVISORY_FIELDS = frozenset(each.name for each in REQUEST_FIELDS if each.field_class is ADVISORY)
"""The fields that are left out with any value if a vendor does not have them."""

ADVISORY_VALUES = {each.name: each.advisory_values for each in REQUEST_FIELDS if each.advisory_values}
"""The values with which a steering field is advisory."""


def is_advisory(field: str, value: object) -> bool:
    """Return whether a field with this value promises nothing about the response."""
    if field in ADVISORY_FIELDS:
        return True
    return field in ADVISORY_VALUES and value in ADVISORY_VALUES[field]


def class_label(name: str) -> str:
    """Return the class of a field for people, with the values that are advisory. Unknown fields are steering."""
    found = next((each for each in REQUEST_FIELDS if each.name == name), None)
    if found is None or not found.advisory_values:
        return STEERING if found is None else found.field_class
    values = " or ".join([str(value).lower() for value in found.advisory_values])
    return f"{found.field_class}; advisory if {values}"


_PLAIN_NAME: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)


def shown_names(names: Collection[str], most: int) -> list[str]:
    """Return at most `most` names for a header and a log line. `unknown` replaces each name that is no plain word, and
    all names beyond the limit."""
    shown = [name if _PLAIN_NAME.fullmatch(name) else "unknown" for name in islice(names, max(0, most))]
    return shown if len(shown) == len(names) else [*shown, "unknown"]
