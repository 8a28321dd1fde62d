"""Where a Gemini model is found, and which generation it is of, where the wire depends on it. Never a field that a
model lacks: the row says that.

Sources: "Thinking", "Thought signatures", "Function calling" and "Structured output" pages, November 2026.
"""

import re
from urllib.parse import quote

from providers.dialect import Target

_GENERATION = re.compile(r"(?:^|[/_-])gemini-(\d+)")

_OF_ITS_OWN = re.compile(r"(?:tunedModels|endpoints)/[^/]+")


def model_path(path: str, model: str) -> str:
    """The path of a model, given that of the vendor's own. Tuned models and endpoints have a collection of their own,
    which their names begin with."""
    model = model.removeprefix("models/")
    if _OF_ITS_OWN.fullmatch(model):
        return "/" + quote(model, safe="/@:")
    return path.replace("{model}", quote(model, safe="@:"))


def modern(target: Target) -> bool:
    """Whether the model is of generation 3 or later.

    Those name how much to think by a level and not by a budget, want the ids and signatures of their calls back, and
    hold JSON beside tools. Names that tell no generation (`gemini-flash-latest`, a tuned model's) are the newest.
    """
    for name in (target.upstream_model, target.model):
        if found := _GENERATION.search(name):
            return int(found[1]) >= 3
    return True
