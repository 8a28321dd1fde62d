"""Resolves fields that depend on each other: aliases, conflicts, and values that mean the same as an absent field.

Each step changes the values of the parsed fields and adds problems. A field with a problem counts as absent.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

from providers.unified_request import MAX_STOPS, ChatPrompt, Guided, LogprobsWanted, TextPrompt, TokenPrompt
from proxy.surfaces.request.legacy_functions import legacy_functions
from proxy.surfaces.request.parse_state import ParsedFields
from proxy.surfaces.request.prompt import match_images
from proxy.surfaces.request.reasoning import reasoning
from proxy.surfaces.request.rule_kinds import Invalid

LIMITS = ("max_completion_tokens", "max_tokens", "max_new_tokens")
"""The names of the token limit, in the order in which errors name them."""

_OTHER_LIMITS: Final = frozenset(LIMITS) - {"max_tokens"}

GUIDED: Mapping[str, Literal["json", "regex", "choice", "grammar"]] = {
    "guided_json": "json",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
}


SPELLINGS: Mapping[str, str] = {
    "json_schema": "guided_json",
    "regex": "guided_regex",
    "choice": "guided_choice",
    "ebnf": "guided_grammar",
    "grammar": "guided_grammar",
}
"""The names that engines have for the guided fields, each with the unified name."""


def limits(parsed: ParsedFields) -> None:
    """Merge the names of the token limit; different values conflict."""
    values = parsed.values
    if _OTHER_LIMITS.isdisjoint(values) and values.get("max_tokens"):
        # The common case. The merged limit is the last of the values.
        values["max_tokens"] = values.pop("max_tokens")
        return
    agreed = _merge_aliases(parsed, LIMITS, "limit")
    if agreed is None:
        return
    leader, limit = agreed
    if limit == 0 and not parsed.get("echo", bool) and parsed.operation not in parsed.rules.bare_zero_tokens:
        parsed.refuse(leader, Invalid("must be at least 1 unless 'echo' is true"))
    values["max_tokens"] = limit


SEEDS = ("seed", "random_seed")
"""The names of the seed: OpenAI's, then Mistral's, which only Mistral's surface accepts."""


def seeds(parsed: ParsedFields) -> None:
    """Merge the names of the seed."""
    if "random_seed" in parsed.values and (agreed := _merge_aliases(parsed, SEEDS, "seed")) is not None:
        parsed.values["seed"] = agreed[1]


def _merge_aliases(parsed: ParsedFields, names: Sequence[str], kind: str) -> tuple[str, int] | None:
    """Remove several names of one value, and return the first present name with its value. Different values
    conflict."""
    given = {name: value for name in names if (value := parsed.take(name, int)) is not None}
    if not given:
        return None
    leader, value = next(iter(given.items()))
    for name, other in given.items():
        if other != value:
            parsed.conflict(name, f"differs from '{leader}', which names the same {kind}")
    return leader, value


def stops(parsed: ParsedFields) -> None:
    """Merge `stop` and `stop_sequences`, in order, each string once."""
    given = {name: listed for name in ("stop", "stop_sequences") if (listed := parsed.take(name, tuple)) is not None}
    if not given:
        return
    merged: tuple[str, ...] = tuple(dict.fromkeys(word for listed in given.values() for word in listed))
    if len(merged) > MAX_STOPS:
        both = " together with 'stop_sequences'" if len(given) > 1 else ""
        parsed.refuse(next(iter(given)), Invalid(f"may hold at most {MAX_STOPS} strings{both}"))
    if merged:
        parsed.values["stop"] = merged


def logprobs(parsed: ParsedFields) -> None:
    """Merge the three fields about log probabilities into one. A count requests the form with four arrays; true
    requests the `content` form."""
    values = parsed.values
    if not ("logprobs" in values or "top_logprobs" in values or "return_token_log_probs" in values):
        return
    wanted = parsed.take("logprobs", int)
    top = parsed.take("top_logprobs", int)
    spelled = parsed.take("return_token_log_probs", bool)
    if spelled and wanted is False:
        parsed.conflict("return_token_log_probs", "is true while 'logprobs' is false")
    elif wanted is False or (wanted is None and not spelled):
        if top and not parsed.refused("logprobs", "return_token_log_probs"):
            parsed.refuse("top_logprobs", Invalid("needs 'logprobs', which must be true or a count"))
    elif wanted is None or wanted is True:
        values["logprobs"] = LogprobsWanted(top or 0, "content")
    else:
        values["logprobs"] = LogprobsWanted(wanted if top is None else top, "legacy")


def candidates(parsed: ParsedFields) -> None:
    """Drop `best_of` if it equals `n`, and refuse a smaller one. A greater one cannot be combined with streaming."""
    best = parsed.take("best_of", int)
    if not best:
        return
    n = parsed.get("n", int) or 1
    if best < n:
        parsed.refuse("best_of", Invalid("must be at least 'n'; n must be at most best_of"))
    elif best > n:
        if parsed.get("stream", bool):
            parsed.conflict("best_of", "cannot be greater than 'n' in a stream")
        parsed.values["best_of"] = best


def streaming(parsed: ParsedFields) -> None:
    """Refuse `stream_options`, even empty, without a stream."""
    if "stream_options" in parsed.values and not parsed.get("stream", bool) and not parsed.refused("stream"):
        parsed.refuse("stream_options", Invalid("is only allowed when 'stream' is true"))


def neutral(parsed: ParsedFields) -> None:
    """Remove an empty `suffix`, and `echo_last` beside `echo`: they have no effect."""
    values = parsed.values
    if values.get("suffix") == "":
        del values["suffix"]
    if "echo_last" in values and values.get("echo") is True:
        del values["echo_last"]


def images(parsed: ParsedFields) -> None:
    """Check images against the image markers of the prompt. If there is no image, the marker is ordinary text."""
    given = parsed.get("images", tuple)
    if given is None:
        return
    if not any(given):
        del parsed.values["images"]
        return
    prompt = parsed.values.get("prompt", parsed.values.get("messages"))
    if isinstance(prompt, TextPrompt | TokenPrompt | ChatPrompt):
        try:
            match_images(given, prompt)
        except Invalid as bad:
            parsed.refuse("images", bad)


def spellings(parsed: ParsedFields) -> None:
    """Put constraints in engines' spellings under the unified names. Two spellings must have the same value."""
    values = parsed.values
    for name in ("structured_outputs", *SPELLINGS):
        value = values.pop(name, None)
        meant = value if name == "structured_outputs" else {SPELLINGS.get(name, name): value}
        for field, constraint in meant.items() if isinstance(meant, dict) and value is not None else ():
            if values.setdefault(field, constraint) != constraint:
                parsed.conflict(name, f"differs from '{field}', which sets the same kind of constraint")


def guided(parsed: ParsedFields) -> None:
    """Allow at most one guided field, and no other constraint of the text beside it."""
    values = parsed.values
    given = [name for name in GUIDED if name in values]
    if not given:
        return
    leader = given[0]
    for name in given[1:]:
        parsed.conflict(name, f"cannot go with '{leader}'")
    format_ = values.get("response_format")
    if isinstance(format_, dict) and format_.get("type") != "text":
        parsed.conflict(leader, "cannot go with a 'response_format' other than text")
    if values.get("tools"):
        parsed.conflict(leader, "cannot go with 'tools'")
    for name in given:
        value = values.pop(name)
        if name == leader and isinstance(value, dict | tuple | str):
            values["guided"] = Guided(GUIDED[name], value)


def tools(parsed: ParsedFields) -> None:
    """Refuse fields that the chat form of an upstream lacks, if there are tools: echo, suffix, token ids."""
    values = parsed.values
    if not values.get("tools"):
        return
    for name in ("echo", "echo_last", "suffix"):
        if values.get(name):
            parsed.conflict(name, "cannot go with 'tools'")
    if isinstance(values.get("prompt"), TokenPrompt):
        parsed.conflict("prompt", "cannot be token ids when there are 'tools'")


_Step = Callable[[ParsedFields], None]

STEPS: tuple[tuple[_Step, frozenset[str]], ...] = (
    (limits, frozenset(LIMITS)),
    (seeds, frozenset({"random_seed"})),
    (stops, frozenset({"stop", "stop_sequences"})),
    (logprobs, frozenset({"logprobs", "top_logprobs", "return_token_log_probs"})),
    (candidates, frozenset({"best_of"})),
    (streaming, frozenset({"stream_options"})),
    (neutral, frozenset({"suffix", "echo_last"})),
    (images, frozenset({"images"})),
    (spellings, frozenset({"structured_outputs", *SPELLINGS})),
    (legacy_functions, frozenset({"functions", "function_call"})),
    (guided, frozenset({"structured_outputs", *SPELLINGS, *GUIDED})),
    (tools, frozenset({"tools", "functions"})),
    (reasoning, frozenset({"reasoning", "thinking"})),
)
"""The steps, each with its fields. A step is necessary only if the client sent one of its fields. The order matters:
`tools` reads the values that `neutral` leaves."""


def resolve(parsed: ParsedFields) -> None:
    """Resolve the fields of a request; most requests need one step."""
    for step in _steps_for(frozenset(parsed.values)):
        step(parsed)


@lru_cache(maxsize=1024)
def _steps_for(given: frozenset[str]) -> tuple[_Step, ...]:
    """Return the necessary steps for these fields. The names are the gateway's own, so that each cache entry is
    small."""
    return tuple([step for step, concerned in STEPS if not concerned.isdisjoint(given)])
