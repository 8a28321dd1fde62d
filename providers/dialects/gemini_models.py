"""Which generation a Gemini model is of, where the wire depends on it. Never a field that a model lacks: the row says
that.

Sources: "Thinking", "Thought signatures", "Function calling" and "Structured output" pages, November 2026.
"""

import re

from providers.dialect import Target

_GENERATION = re.compile(r"(?:^|[/_-])gemini-(\d+)")


def modern(target: Target) -> bool:
    """Whether the model is of generation 3 or later.

    Those name how much to think by a level and not by a budget, want the ids and signatures of their calls back, and
    hold JSON beside tools. Names that tell no generation (`gemini-flash-latest`, a tuned model's) are the newest.
    """
    for name in (target.upstream_model, target.model):
        if found := _GENERATION.search(name):
            return int(found[1]) >= 3
    return True
