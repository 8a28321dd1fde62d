"""Writers of the unified fields for TGI's own endpoints, and its capabilities.

Sources: huggingface/text-generation-inference `docs/openapi.json`, `router/src/validation.rs`,
`server/text_generation_server/utils/tokens.py`, January 2026; `text-generation` 0.7.0 type `Parameters`.
"""

from collections.abc import Mapping
from functools import cache

from providers.capabilities import NATIVE, PREFIXED, RANKED, SCANNED, Capabilities, Cell, compiled, emulated, refused
from providers.constraints.constraint_styles import (
    BY_REGEX,
    ConstraintStyle,
    Encoding,
    Unenforceable,
    choice_regex,
    refused_encoding,
)
from providers.constraints.engine_gaps import TGI
from providers.dialects.shared.field_writers import (
    CHECKED_FIELDS,
    above_zero,
    check_logprobs,
    emulate_stop_string,
    sampled,
)
from providers.dialects.shared.prompt import ONE_RAW_PROMPT
from providers.dialects.shared.request_body import (
    REFUSES_OVERFLOW,
    FieldWriter,
    RequestBody,
    bounded,
    check_limited_window,
    constraint_writer,
    listed,
    own_constraint_cells,
    plain,
    unless_neutral,
)
from providers.json_types import JsonObject, JsonValue
from providers.request_fields import STOP_STRING, WINDOW, is_neutral
from providers.unified_request import Guided

MOST_STOPS = 4
MOST_LOGPROBS = 5


def _parameter(name: str) -> str:
    return f"parameters.{name}"


def _sampled(put: FieldWriter) -> FieldWriter:
    return sampled(put, _parameter("do_sample"), True)


def _temperature(draft: RequestBody, value: object) -> None:
    if value:
        draft.put(_parameter("temperature"), value)
    draft.put(_parameter("do_sample"), bool(value))


def _between_0_and_1(name: str) -> FieldWriter:
    """Return a writer of a number between 0 and 1, both excluded. The engine refuses 1, which is the neutral value."""

    def put(draft: RequestBody, value: object) -> None:
        if not isinstance(value, int | float) or not 0 < value < 1:
            raise draft.invalid(name, "must be above 0 and at most 1")
        draft.put(_parameter(name), value)

    return put


def _logprobs(draft: RequestBody, value: object) -> None:
    # The response always has the log probabilities of the sampled tokens. This field shows the decoder that the client
    # requested them.
    draft.put(_parameter("top_n_tokens"), max(check_logprobs(draft, value, MOST_LOGPROBS).top, 1))


def _grammar(kind: str, value: JsonValue) -> JsonObject:
    return {"parameters": {"grammar": {"type": kind, "value": value}}}


def _object_grammar(guided: Guided) -> JsonObject:
    if "properties" not in guided.schema:
        raise Unenforceable("it would not keep this schema: $ must have properties")
    return _grammar("json", guided.schema)


_STYLE = ConstraintStyle(
    Encoding(NATIVE, _object_grammar),
    Encoding(NATIVE, lambda guided: _grammar("regex", guided.value_text)),
    Encoding(BY_REGEX, lambda guided: _grammar("regex", choice_regex(guided.choices))),
    refused_encoding("it has no grammars"),
    engine=TGI,
)

FIELDS: Mapping[str, FieldWriter] = {
    "max_tokens": bounded("max_tokens", _parameter("max_new_tokens"), 1, None),
    "temperature": _temperature,
    "top_p": unless_neutral("top_p", _sampled(_between_0_and_1("top_p"))),
    "top_k": unless_neutral("top_k", _sampled(plain(_parameter("top_k")))),
    "typical_p": unless_neutral("typical_p", _sampled(_between_0_and_1("typical_p"))),
    "seed": _sampled(bounded("seed", _parameter("seed"), 0, None)),
    "frequency_penalty": unless_neutral("frequency_penalty", plain(_parameter("frequency_penalty"))),
    "repetition_penalty": unless_neutral(
        "repetition_penalty", above_zero("repetition_penalty", _parameter("repetition_penalty"))
    ),
    "stop": listed(_parameter("stop")),
    STOP_STRING: emulate_stop_string,
    "logprobs": _logprobs,
    "guided": constraint_writer(_STYLE),
    "response_format": constraint_writer(_STYLE),
    WINDOW: check_limited_window,
}
"""Writers of all supported fields except `echo` and `images`. Fields without a writer are refused unless their value is
neutral."""

ELSEWHERE = frozenset({"echo", "images"})

_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "messages": refused("its own endpoint takes prompts; the profile 'tgi' has its chat"),
    "images": emulated("marks in the text"),
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": SCANNED,
    STOP_STRING: emulated("the stop that matched stays in the text"),
    "echo.logprobs": NATIVE,
    **own_constraint_cells(_STYLE),
    **REFUSES_OVERFLOW,
    "unknown": refused("the engine ignores fields it does not know"),
}
_WATCHED = frozenset({"n", "best_of", "echo", "stop"})


@cache
def capabilities(scored: bool, verifies: bool) -> Capabilities:
    """Return the capabilities. If `scored`, the client requests log probabilities, and the engine echoes the prompt
    with its log probabilities. Otherwise the gateway itself makes the echo, and the client may request no tokens.
    """
    cells = compiled(FIELDS.keys(), {**_CELLS, "echo": NATIVE if scored else PREFIXED})
    return Capabilities(cells, most_stops=MOST_STOPS, verifies=verifies, watched=_WATCHED | CHECKED_FIELDS[verifies])


def echoes(draft: RequestBody) -> bool:
    """Return whether the client wants the prompt echoed. Raises Refusal if the request also has images, which change
    the prompt's text."""
    if is_neutral("echo", draft.params.get("echo", False)):
        return False
    if not is_neutral("images", draft.params.get("images", ())):
        raise draft.unsupported("echo", "it has no log probabilities of images")
    return True
