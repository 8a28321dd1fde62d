"""The capability matrix: what becomes of every feature on each vendor, for the models and endpoints that differ.

Never decides anything: it asks the dialects, which encode by the same tables.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from providers.auth import Credential
from providers.capabilities import FEATURES, Cell, Feature, Support, refused
from providers.dialect import Target, Timeouts
from providers.failure import Refusal
from providers.profiles import Profile
from providers.registry import DIALECTS
from providers.unified import ChatPrompt, JsonObject, Operation, Params, TextPrompt, UnifiedRequest


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """What becomes of the features that clients of an endpoint can ask for, with one model of a vendor."""

    profile: str
    model: str
    operation: Operation
    cells: Mapping[str, Cell]

    @property
    def closed(self) -> str:
        """Why the model has no such endpoint, so that every feature is refused for this one reason; empty when it
        has."""
        found = set(self.cells.values())
        cell = next(iter(found))
        return cell.how if cell.refused and len(found) == 1 else ""


def rows(profiles: Iterable[Profile], context_window: int | None = None) -> Iterator[MatrixRow]:
    """A row for each operation of each example model. `context_window` is the window in tokens that the table gives;
    None as where it gives none."""
    for profile in profiles:
        for model in profile.examples:
            target = _target(profile, model, context_window)
            for operation in Operation:
                asked = [feature for feature in FEATURES.values() if operation in feature.operations]
                cells = {feature.name: _cell(feature, operation, target) for feature in asked}
                yield MatrixRow(profile.name, model, operation, cells)


def sizes(rows: Iterable[MatrixRow]) -> Mapping[Support, int]:
    """How many cells there are of each kind."""
    kinds = [cell.support for row in rows for cell in row.cells.values()]
    return {support: kinds.count(support) for support in Support}


def summary(rows: Iterable[MatrixRow]) -> str:
    """The sizes in words: `3 cells: 1 native, 1 emulated, 1 refused`."""
    counts = sizes(rows)
    return f"{sum(counts.values())} cells: {', '.join(f'{count} {support}' for support, count in counts.items())}"


def _target(profile: Profile, model: str, context_window: int | None) -> Target:
    return Target(
        vendor=profile.name,
        model=model,
        deployment="default",
        upstream_model=model,
        profile=profile,
        dialect=DIALECTS[profile.dialect],
        base_url="",
        credential=Credential(),
        timeouts=Timeouts(connect=1, first_event=1, idle=1, total=1),
        context_window=context_window,
    )


def _cell(feature: Feature, operation: Operation, target: Target) -> Cell:
    prompt = (
        TextPrompt(("a",)) if operation is Operation.COMPLETIONS else ChatPrompt(({"role": "user", "content": "a"},))
    )
    request = UnifiedRequest(operation, target.model, prompt, _LEADING.get(feature.field, {}))
    try:
        return target.dialect.capabilities(request, target)[feature.name]
    except Refusal as refusal:
        return refused(_reason(refusal, target))


def _reason(refusal: Refusal, target: Target) -> str:
    """The part of a refusal that does not repeat field and deployment, where it has one."""
    return refusal.message.rpartition(f"{target.name}: ")[2].removesuffix(".")


_TOOLS: list[JsonObject] = [{"type": "function", "function": {"name": "a"}}]
_LEADING: Mapping[str, Params] = {
    "tools": {"tools": _TOOLS},
    "tool_choice": {"tools": _TOOLS},
    "parallel_tool_calls": {"tools": _TOOLS},
    "suffix": {"suffix": "a"},
}
"""Params by which a request goes to another endpoint of the vendor than it would without them."""
