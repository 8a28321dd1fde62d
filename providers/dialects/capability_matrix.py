"""The capability matrix: how each vendor supports every feature, for each of its example models and endpoints."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from providers.capabilities import FEATURES, Cell, Feature, Support, refused
from providers.dialects.registry import DIALECTS
from providers.failure import Refusal
from providers.hosted_tools.translate_hosted import is_tool, search_cell
from providers.json_types import JsonObject
from providers.profile import Profile
from providers.request_fields import PROMPT_FIELDS, SEARCH
from providers.target import Target, Timeouts
from providers.unified_request import SHORTEST_PROMPTS, Operation, Params, UnifiedRequest
from providers.vendor_credential import Credential


@dataclass(frozen=True, slots=True)
class MatrixEntry:
    """The matrix cells of one model of a vendor: a cell for each feature that clients of an endpoint can use."""

    profile: str
    model: str
    operation: Operation
    cells: Mapping[str, Cell]

    @property
    def closed(self) -> str:
        """The reason why the model has no such endpoint, so that every feature is refused; empty if it has the
        endpoint."""
        found = set(self.cells.values())
        cell = next(iter(found))
        return cell.how if cell.refused and len(found) == 1 else ""


def matrix_entries(profiles: Iterable[Profile], context_window: int | None = None) -> Iterator[MatrixEntry]:
    """Yield an entry for each operation of each example model, for the vendors that generate text. `context_window` is
    the configured context window in tokens, otherwise `None`."""
    for profile in profiles:
        for model in profile.examples if profile.wires else ():
            target = _target(profile, model, context_window)
            for operation in Operation:
                features = [feature for feature in FEATURES.values() if operation in feature.operations]
                cells = {feature.name: _cell(feature, operation, target) for feature in features}
                yield MatrixEntry(profile.name, model, operation, cells)


def count_cells(entries: Iterable[MatrixEntry]) -> Mapping[Support, int]:
    """Return the number of cells of each kind of support."""
    kinds = [cell.support for entry in entries for cell in entry.cells.values()]
    return {support: kinds.count(support) for support in Support}


def summarize(entries: Iterable[MatrixEntry]) -> str:
    """Return the numbers of cells as a text: `3 cells: 1 native, 1 emulated, 1 refused`."""
    counts = count_cells(entries)
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
    if feature.name == SEARCH:
        # In the request that a dialect encodes, the field has been replaced by a tool or by the vendor's form of the
        # field.
        return _search_cell(operation, target)
    request = UnifiedRequest(
        operation, target.model, SHORTEST_PROMPTS[operation], _ENDPOINT_PARAMS.get(feature.field, {})
    )
    try:
        return target.dialect.capabilities(request, target)[feature.name]
    except Refusal as refusal:
        return refused(_reason(refusal, target))


def _search_cell(operation: Operation, target: Target) -> Cell:
    """Return the cell of a web search, or the refusal of the endpoint if the model lacks it."""
    found = search_cell(target.profile, *target.model_names)
    # If the search is a tool, the endpoint must accept tools.
    need = "tools" if is_tool(target, "web_search") else PROMPT_FIELDS[operation]
    closed = _cell(FEATURES[need], operation, target)
    return closed if closed.refused else found


def _reason(refusal: Refusal, target: Target) -> str:
    """Return the reason that a refusal's message gives, without the names of the field and the deployment; empty if it
    gives no reason."""
    return refusal.message.rpartition(f"{target.name}: ")[2].removesuffix(".")


_TOOLS: list[JsonObject] = [{"type": "function", "function": {"name": "a"}}]
_ENDPOINT_PARAMS: Mapping[str, Params] = {
    "tools": {"tools": _TOOLS},
    "tool_choice": {"tools": _TOOLS},
    "parallel_tool_calls": {"tools": _TOOLS},
    "suffix": {"suffix": "a"},
}
"""Maps a feature's field to parameters that send a request to another endpoint of the vendor."""
