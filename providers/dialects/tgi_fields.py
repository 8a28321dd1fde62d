"""The unified fields on TGI's own wire: how each one is written, or why it cannot be. Never the prompt.

Sources: huggingface/text-generation-inference `docs/openapi.json`, `router/src/validation.rs`,
`server/text_generation_server/utils/tokens.py`, January 2026; `text-generation` 0.7.0 type `Parameters`.
"""

from collections.abc import Mapping
from functools import cache

from providers.capabilities import (
    FAN_OUT,
    NATIVE,
    PREFIXED,
    RANKED,
    RESENT,
    SCANNED,
    Capabilities,
    Cell,
    compiled,
    emulated,
    refused,
)
from providers.dialects.native_fields import (
    WINDOW,
    Draft,
    Put,
    at_window,
    bounded,
    choices_of,
    constrained,
    listed,
    plain,
    schema_of,
    unless_neutral,
)
from providers.guided import Unenforceable, choice_regex
from providers.guided_engines import TGI, engine_problem
from providers.unified import Guided, LogprobsWanted, is_neutral

KEEP = "include_stop_str_in_output"
"""The field whose effect is made here: the engine leaves the stop string in the text and does not say which one it
was."""

MOST_STOPS = 4
MOST_LOGPROBS = 5

_GREEDY = frozenset({"top_p", "top_k", "typical_p", "seed"})
"""What samples, and would do so in spite of a temperature of 0, which can only be left out."""


def _parameter(name: str) -> str:
    return f"parameters.{name}"


def _sampled(put: Put) -> Put:
    """A setting of sampling, which must be switched on."""

    def write(draft: Draft, value: object) -> None:
        if draft.params.get("temperature") != 0:
            put(draft, value)
            draft.put(_parameter("do_sample"), True)

    return write


def _temperature(draft: Draft, value: object) -> None:
    if value:
        draft.put(_parameter("temperature"), value)
    draft.put(_parameter("do_sample"), bool(value))


def _between_ends(name: str) -> Put:
    """A share, of which neither 0 nor 1 can be said."""

    def put(draft: Draft, value: object) -> None:
        if not isinstance(value, int | float) or not 0 < value < 1:
            raise draft.invalid(name, "must be above 0 and at most 1")
        draft.put(_parameter(name), value)

    return put


def _above_zero(draft: Draft, value: object) -> None:
    if not isinstance(value, int | float) or value <= 0:
        raise draft.invalid("repetition_penalty", "must be above 0")
    draft.put(_parameter("repetition_penalty"), value)


def _logprobs(draft: Draft, value: object) -> None:
    if not isinstance(value, LogprobsWanted):
        raise TypeError(f"logprobs holds {type(value).__name__}")
    if value.top > MOST_LOGPROBS:
        raise draft.invalid("logprobs", f"lists at most {MOST_LOGPROBS} tokens")
    # Those of the sampled tokens come always; this says that they are wanted.
    draft.put(_parameter("top_n_tokens"), max(value.top, 1))


def _keep_stop(draft: Draft, value: object) -> None:
    if value and draft.params.get("stop"):
        draft.emulated.append(KEEP)


def _schema(draft: Draft, wanted: Guided) -> None:
    schema = schema_of(wanted)
    problem = engine_problem(TGI, schema)
    if problem is None and "properties" not in schema:
        problem = "$ must have properties"
    if problem is not None:
        raise Unenforceable(f"it would not keep this schema: {problem}")
    _put_grammar(draft, "json", schema)


def _regex(draft: Draft, wanted: Guided) -> None:
    _put_grammar(draft, "regex", wanted.value_text)


def _choice(draft: Draft, wanted: Guided) -> None:
    _put_grammar(draft, "regex", choice_regex(choices_of(wanted)))


def _put_grammar(draft: Draft, kind: str, value: object) -> None:
    draft.put(_parameter("grammar"), {"type": kind, "value": value})


FIELDS: Mapping[str, Put] = {
    "max_tokens": bounded("max_tokens", _parameter("max_new_tokens"), 1, None),
    "temperature": _temperature,
    "top_p": unless_neutral("top_p", _sampled(_between_ends("top_p"))),
    "top_k": unless_neutral("top_k", _sampled(plain(_parameter("top_k")))),
    "typical_p": unless_neutral("typical_p", _sampled(_between_ends("typical_p"))),
    "seed": _sampled(bounded("seed", _parameter("seed"), 0, None)),
    "frequency_penalty": unless_neutral("frequency_penalty", plain(_parameter("frequency_penalty"))),
    "repetition_penalty": unless_neutral("repetition_penalty", _above_zero),
    "stop": listed(_parameter("stop")),
    KEEP: _keep_stop,
    "logprobs": _logprobs,
    "guided": constrained({"json": _schema, "regex": _regex, "choice": _choice}),
    "response_format": constrained({"json": _schema}),
    WINDOW: at_window,
}
"""The fields the engine honours besides echo and images; any other is refused unless its value asks for nothing."""

ELSEWHERE = frozenset({"echo", "images"})

_TEXT_ONLY = refused("it takes prompts as text only")
_NO_GRAMMAR = refused("it has no grammars")
_CELLS: Mapping[str, Cell] = {
    "prompt": NATIVE,
    "prompt.batch": FAN_OUT,
    "prompt.tokens": _TEXT_ONLY,
    "prompt.token_batch": _TEXT_ONLY,
    "messages": refused("its own endpoint takes prompts; the profile 'tgi' has its chat"),
    "images": emulated("marks in the text"),
    "n": FAN_OUT,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": SCANNED,
    KEEP: emulated("the stop that matched stays in the text"),
    "echo.logprobs": NATIVE,
    "response_format.json_object": refused("it has no JSON mode without a schema"),
    "response_format.json_schema": NATIVE,
    "response_format.grammar": _NO_GRAMMAR,
    "guided_json": NATIVE,
    "guided_regex": NATIVE,
    "guided_choice": emulated("a regular expression"),
    "guided_grammar": _NO_GRAMMAR,
    f"{WINDOW}.truncate": RESENT,
    f"{WINDOW}.error": NATIVE,
    "unknown": refused("the engine ignores fields it does not know"),
}
_WATCHED = frozenset({"n", "best_of", "echo", "stop"})


@cache
def capabilities(scored: bool, verifies: bool) -> Capabilities:
    """The table; `scored` says that log probabilities are wanted, those of an echoed prompt too. Without them the
    gateway repeats a prompt by itself, since then even an answer of no tokens can be had."""
    cells = compiled(FIELDS.keys(), {**_CELLS, "echo": NATIVE if scored else PREFIXED})
    held = {"guided", "response_format"} if verifies else set()
    return Capabilities(cells, most_stops=MOST_STOPS, verifies=verifies, watched=_WATCHED | held)


def echoes(draft: Draft) -> bool:
    """Whether the prompt is to be repeated with its log probabilities. Raises Refusal where its text is not the
    client's."""
    if is_neutral("echo", draft.params.get("echo", False)):
        return False
    if not is_neutral("images", draft.params.get("images", ())):
        raise draft.unsupported("echo", "it has no log probabilities of images")
    return True
