"""Writers of the unified fields for llama.cpp's own endpoints, and its capabilities.

Sources: llama.cpp `tools/server/README.md`; the server of xllamacpp 2026.10, tried in November 2026. If a call has
several prompts, the tokens of each are counted. An `n_cmpl` above the number of slots is refused. `n_predict: 0`
generates one token.
"""

from collections.abc import Mapping
from functools import cache

from providers.capabilities import (
    APPENDED,
    COUNTED,
    FAN_OUT,
    NATIVE,
    RANKED,
    Capabilities,
    Cell,
    compiled,
    counted_first,
    refused,
)
from providers.constraints.style_table import STYLES
from providers.dialects.shared.field_writers import CHECKED_FIELDS, check_logprobs, emulate_stop_string, neutral_as
from providers.dialects.shared.prompt import ONE_RAW_PROMPT
from providers.dialects.shared.request_body import (
    FieldWriter,
    RequestBody,
    bounded,
    check_limited_window,
    constraint_writer,
    listed,
    own_constraint_cells,
    plain,
    unknown_cell,
    unless_neutral,
)
from providers.profile import Profile
from providers.request_fields import STOP_STRING, WINDOW
from providers.unified_request import Operation

_STYLE = STYLES["llamacpp"][Operation.COMPLETIONS]


def _logprobs(draft: RequestBody, value: object) -> None:
    # With 0 the server would return no log probabilities at all.
    draft.body["n_probs"] = max(check_logprobs(draft, value).top, 1)


def _mirostat(path: str) -> FieldWriter:
    def put(draft: RequestBody, value: object) -> None:
        draft.put("mirostat", 2)
        draft.put(path, value)

    return put


FIELDS: Mapping[str, FieldWriter] = {
    "max_tokens": bounded("max_tokens", "n_predict", 1, None),
    "temperature": plain("temperature"),
    "top_p": plain("top_p"),
    "top_k": neutral_as("top_k", "top_k", 0),
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
    STOP_STRING: emulate_stop_string,
    "logprobs": _logprobs,
    "logit_bias": unless_neutral("logit_bias", plain("logit_bias")),
    "guided": constraint_writer(_STYLE),
    "response_format": constraint_writer(_STYLE),
    WINDOW: check_limited_window,
}
"""Writers of all supported fields except `suffix`. Fields without a writer are refused unless their value is
neutral."""

_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "messages": refused("its own endpoint takes prompts; the profile 'llamacpp' has its chat"),
    "suffix": NATIVE,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": NATIVE,
    STOP_STRING: APPENDED,
    **own_constraint_cells(_STYLE),
    f"{WINDOW}.truncate": NATIVE,
    f"{WINDOW}.error": COUNTED,
}
_COMPLETION: Mapping[str, Cell] = {"prompt.batch": NATIVE, "prompt.tokens": NATIVE, "prompt.token_batch": NATIVE}
_AS_TEXT = refused("to fill in the middle it takes text only")
_INFILL: Mapping[str, Cell] = {"prompt.batch": FAN_OUT, "prompt.tokens": _AS_TEXT, "prompt.token_batch": _AS_TEXT}
_WATCHED = frozenset({"n", "best_of", "echo", "stop"})


@cache
def capabilities(profile: Profile, infill: bool) -> Capabilities:
    """Return the capabilities of `/infill` if `infill`, else of `/completion`.

    The cache is keyed by the profile, which lives as long as the process.
    """
    cells = compiled(
        FIELDS.keys(), {**_CELLS, **(_INFILL if infill else _COMPLETION), "unknown": unknown_cell(profile)}
    )
    watched = _WATCHED | CHECKED_FIELDS[profile.verifies]
    return Capabilities(cells, most_stops=None, verifies=profile.verifies, counts=counted_first(cells), watched=watched)
