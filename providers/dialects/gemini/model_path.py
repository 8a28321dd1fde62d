"""Derives the URL path and the generation of a Gemini model, and the Google service that runs it.

Sources: "Thinking", "Thought signatures", "Function calling" and "Structured output" pages, November 2026.
"""

import re
from urllib.parse import quote

from providers.dialects.shared import thought_signatures
from providers.dialects.shared.thought_signatures import Service
from providers.target import Target
from providers.unified_request import Operation

_PATH_WITH_COLLECTION = re.compile(r"(?:tunedModels|endpoints)/[^/]+")


def model_path(path: str, model: str) -> str:
    """Return the URL path of a model. `path` is the path of the vendor's own models.

    The name of a tuned model or an endpoint begins with the name of its own collection.
    """
    model = model.removeprefix("models/")
    if _PATH_WITH_COLLECTION.fullmatch(model):
        return "/" + quote(model, safe="/@:")
    return path.replace("{model}", quote(model, safe="@:"))


def is_modern(target: Target) -> bool:
    """Return whether the model is of generation 3 or later.

    Such models accept a thinking level instead of a budget, require ids and signatures of their calls to be sent back,
    and can respond in JSON beside tools.
    """
    return thought_signatures.is_modern(*target.model_names)


def service_of(target: Target) -> Service:
    """Return the Google service of a target. The target's paths show the service."""
    return "vertex" if "/publishers/" in target.profile.wires[Operation.CHAT].path else "studio"
