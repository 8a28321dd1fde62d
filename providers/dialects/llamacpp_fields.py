"""The unified fields on llama.cpp's own wire: how each one is written, or why it cannot be. Never the prompt.

Sources: llama.cpp `tools/server/README.md`; the server of xllamacpp 2026.10, tried in November 2026: several prompts in
one call are each counted, an `n_cmpl` above the number of slots is refused, `n_predict: 0` gives one token.
"""

from collections.abc import Mapping
from functools import cache

from providers.capabilities import (
    APPENDED,
    COUNTED,
    FAN_OUT,
    NATIVE,
    PREFIXED,
    RANKED,
    Capabilities,
    Cell,
    compiled,
    counted_first,
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
    unknown_cell,
    unless_neutral,
)
from providers.guided import Unenforceable, choice_grammar, regex_grammar
from providers.guided_engines import LLAMACPP, engine_problem
from providers.profiles import Profile
from providers.unified import Guided, LogprobsWanted, is_neutral

KEEP = "include_stop_str_in_output"
"""The field whose effect is made here: the engine cuts the stop string off and says which one it was."""


def _schema(draft: Draft, wanted: Guided) -> None:
    schema = schema_of(wanted)
    problem = engine_problem(LLAMACPP, schema)
    if problem is not None:
        raise Unenforceable(f"it would not keep this schema: {problem}")
    draft.body["json_schema"] = schema


def _regex(draft: Draft, wanted: Guided) -> None:
    draft.body["grammar"] = regex_grammar(wanted.value_text)


def _choice(draft: Draft, wanted: Guided) -> None:
    draft.body["grammar"] = choice_grammar(choices_of(wanted))


def _grammar(draft: Draft, wanted: Guided) -> None:
    draft.body["grammar"] = wanted.value_text


def _top_k(draft: Draft, value: object) -> None:
    # Left out, it would be the server's own default, which is not "off".
    draft.put("top_k", 0 if is_neutral("top_k", value) else value)


def _logprobs(draft: Draft, value: object) -> None:
    if not isinstance(value, LogprobsWanted):
        raise TypeError(f"logprobs holds {type(value).__name__}")
    # 0 would mean none at all.
    draft.body["n_probs"] = max(value.top, 1)


def _mirostat(path: str) -> Put:
    def put(draft: Draft, value: object) -> None:
        draft.put("mirostat", 2)
        draft.put(path, value)

    return put


def _keep_stop(draft: Draft, value: object) -> None:
    if value and draft.params.get("stop"):
        draft.emulated.append(KEEP)


FIELDS: Mapping[str, Put] = {
    "max_tokens": bounded("max_tokens", "n_predict", 1, None),
    "temperature": plain("temperature"),
    "top_p": plain("top_p"),
    "top_k": _top_k,
    "min_p": plain("min_p"),
    "typical_p": plain("typical_p"),
    "seed": bounded("seed", "seed", 0, 2**32 - 2),
    "frequency_penalty": plain("frequency_penalty"),
    "presence_penalty": plain("presence_penalty"),
    "repetition_penalty": plain("repeat_penalty"),
    "mirostat_target": _mirostat("mirostat_tau"),
    "mirostat_lr": _mirostat("mirostat_eta"),
    "ignore_eos": plain("ignore_eos"),
    "stop": listed("stop"),
    KEEP: _keep_stop,
    "logprobs": _logprobs,
    "logit_bias": unless_neutral("logit_bias", plain("logit_bias")),
    "guided": constrained({"json": _schema, "regex": _regex, "choice": _choice, "grammar": _grammar}),
    "response_format": constrained({"json": _schema, "grammar": _grammar}),
    WINDOW: at_window,
}
"""The fields the engine honours besides a suffix; any other is refused unless its value asks for nothing."""

_BY_GRAMMAR = emulated("a grammar")
_CELLS: Mapping[str, Cell] = {
    "prompt": NATIVE,
    "messages": refused("its own endpoint takes prompts; the profile 'llamacpp' has its chat"),
    "suffix": NATIVE,
    "n": FAN_OUT,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": NATIVE,
    KEEP: APPENDED,
    "echo": PREFIXED,
    "echo.logprobs": refused("it does not tell the log probabilities of a prompt"),
    "response_format.json_object": NATIVE,
    "response_format.json_schema": NATIVE,
    "response_format.grammar": NATIVE,
    "guided_json": NATIVE,
    "guided_regex": _BY_GRAMMAR,
    "guided_choice": _BY_GRAMMAR,
    "guided_grammar": NATIVE,
    f"{WINDOW}.truncate": NATIVE,
    f"{WINDOW}.error": COUNTED,
}
_WHOLE: Mapping[str, Cell] = {"prompt.batch": NATIVE, "prompt.tokens": NATIVE, "prompt.token_batch": NATIVE}
_AS_TEXT = refused("to fill in the middle it takes text only")
_MIDDLE: Mapping[str, Cell] = {"prompt.batch": FAN_OUT, "prompt.tokens": _AS_TEXT, "prompt.token_batch": _AS_TEXT}
_WATCHED = frozenset({"n", "best_of", "echo", "stop"})


@cache
def capabilities(profile: Profile, middle: bool) -> Capabilities:
    """The table; `middle` says that a text is to be filled in. Cached by the row, which lives as long as the
    process."""
    cells = compiled(FIELDS.keys(), {**_CELLS, **(_MIDDLE if middle else _WHOLE), "unknown": unknown_cell(profile)})
    held = {"guided", "response_format"} if profile.verifies else set()
    return Capabilities(
        cells, most_stops=None, verifies=profile.verifies, counts=counted_first(cells), watched=_WATCHED | held
    )
