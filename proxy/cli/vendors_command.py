"""`dragoman vendors`: print the profiles, and how each of them treats each field."""

import json
from collections.abc import Iterator, Mapping, Sequence

from config.problem import did_you_mean
from providers.capabilities import FEATURES, Cell
from providers.dialects.capability_matrix import MatrixEntry, count_cells, matrix_entries, summarize
from providers.dialects.task_matrix import task_entries
from providers.profile import Profile
from providers.profiles.load_profiles import load_profiles
from providers.request_fields import class_label
from providers.tasks.task_fields import TASK_FIELDS
from providers.unified_request import Operation, Task
from proxy.cli.routes_command import NONE, Row, print_columns
from proxy.cli.terminal import USAGE, CommandError, Style, paint

COLUMNS: Row = ("PROFILE", "DIALECT", "PROMPTS", "NATIVE", "EMULATED", "LEFT OUT", "REFUSED", "ADDRESS")
FEATURE_COLUMNS: Row = ("FEATURE", "CLASS", "COMPLETIONS", "CHAT", "HOW, OR WHY NOT")
TASK_COLUMNS: Row = ("FIELD", "CLASS", "SUPPORT", "HOW, OR WHY NOT")

_PROMPTS: Mapping[object, str] = {
    "native": "as they are",
    "chat": "as a chat",
    "suffix": "as a chat, with a suffix as they are",
}
_BY_MODEL = "by model"
_OPERATORS_OWN = "the operator's own"


def vendors_text(name: str | None) -> int:
    """Print a line for each profile or, for one profile, a line for each feature."""
    if name is None:
        _print_profiles()
    else:
        _print_profile(_named(name))
    return 0


def vendors_json(name: str | None) -> int:
    """Print a JSON object with the capabilities of every profile, or of one."""
    profiles = load_profiles().values() if name is None else [_named(name)]
    print(json.dumps({"vendors": [_facts(profile) for profile in profiles]}, indent=2))
    return 0


def _named(name: str) -> Profile:
    profile = load_profiles().get(name)
    if profile is None:
        raise CommandError(f"no profile is called {name!r}{did_you_mean(name, load_profiles())}", USAGE)
    return profile


def _print_profiles() -> None:
    profiles = load_profiles().values()
    print_columns(COLUMNS, [_profile_row(profile) for profile in profiles])
    print(f"\n{summarize(matrix_entries(profiles))}; `dragoman vendors NAME` shows them.")


def _profile_row(profile: Profile) -> Row:
    counts = map(str, count_cells(matrix_entries([profile])).values())
    return (profile.name, profile.dialect, _prompts(profile), *counts, profile.base_url or _OPERATORS_OWN)


def _prompts(profile: Profile) -> str:
    if not profile.wires:
        return NONE
    return _PROMPTS.get(profile.raw_prompts, _BY_MODEL)


def _print_profile(profile: Profile) -> None:
    print(paint(f"{profile.name}: {profile.base_url or _OPERATORS_OWN}", Style.BOLD))
    print(f"dialect {profile.dialect}, prompts {_prompts(profile)}; {summarize(matrix_entries([profile]))}\n")
    models = _by_model(profile)
    if models:
        _print_text(*models)
    _print_tasks(profile)


def _print_text(first: list[MatrixEntry], *others: list[MatrixEntry]) -> None:
    """Print the treatment of the fields of text requests for one model, and how other models differ."""
    if others:
        print(paint(f"{first[0].model}:", Style.BOLD))
    known = list(_feature_rows(first))
    print_columns(FEATURE_COLUMNS, known)
    for other in others:
        print(paint(f"\n{other[0].model}, where it differs from {first[0].model}:", Style.BOLD))
        for row in other:
            if row.closed:
                print(f"{row.operation} is refused: {row.closed}")
        print_columns(FEATURE_COLUMNS, [row for row in _feature_rows(other) if row not in known])


def _print_tasks(profile: Profile) -> None:
    """Print the treatment of the fields of other tasks, such as embeddings and rerankings, if the vendor has them."""
    known: dict[Task, list[Row]] = {}
    for entry in task_entries([profile]):
        rows: list[Row] = [
            (name, TASK_FIELDS[entry.task][name], str(cell.support), cell.how) for name, cell in entry.cells.items()
        ]
        first = known.setdefault(entry.task, rows)
        differing = rows if first is rows else [row for row in rows if row not in first]
        print(paint(f"\n{entry.task} with {entry.model}, wire form {entry.wire.form}:", Style.BOLD))
        print_columns(TASK_COLUMNS, differing)


def _by_model(profile: Profile) -> list[list[MatrixEntry]]:
    every = list(matrix_entries([profile]))
    return [[row for row in every if row.model == model] for model in dict.fromkeys(row.model for row in every)]


def _feature_rows(of_model: Sequence[MatrixEntry]) -> Iterator[Row]:
    cells = {row.operation: {} if row.closed else row.cells for row in of_model}
    for name, feature in FEATURES.items():
        found = {operation: cells[operation].get(name) for operation in (Operation.COMPLETIONS, Operation.CHAT)}
        if any(found.values()):
            supports = [NONE if cell is None else str(cell.support) for cell in found.values()]
            yield (name, class_label(feature.field), *supports, _how(found))


def _how(found: Mapping[Operation, Cell | None]) -> str:
    texts = {operation: cell.how for operation, cell in found.items() if cell is not None and cell.how}
    if len(set(texts.values())) > 1 or (len(texts) == 1 and None not in found.values()):
        return "; ".join(f"{operation}: {how}" for operation, how in texts.items())
    return next(iter(texts.values()), "")


def _facts(profile: Profile) -> dict[str, object]:
    return {
        "name": profile.name,
        "dialect": profile.dialect,
        "base_url": profile.base_url,
        "prompts": _prompts(profile),
        "sizes": count_cells(matrix_entries([profile])),
        "models": [
            {"model": each[0].model, **{row.operation: _cells(row) for row in each}} for each in _by_model(profile)
        ],
        "tasks": [
            {
                "task": entry.task,
                "model": entry.model,
                "form": entry.wire.form,
                "fields": {
                    name: {"class": TASK_FIELDS[entry.task][name], "support": cell.support, "how": cell.how}
                    for name, cell in entry.cells.items()
                },
            }
            for entry in task_entries([profile])
        ],
    }


def _cells(row: MatrixEntry) -> dict[str, dict[str, str]]:
    return {
        name: {"class": FEATURES[name].field_class, "support": cell.support, "how": cell.how}
        for name, cell in row.cells.items()
    }
