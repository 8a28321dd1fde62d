"""Writes the capability matrix into `docs/reference/vendors/index.md`: `python -m tests.docs.matrix_page`."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from providers.capabilities import FEATURES, Support
from providers.dialects.capability_matrix import MatrixEntry, matrix_entries, summarize
from providers.dialects.task_matrix import TaskMatrixEntry, task_entries
from providers.profile import TaskWire
from providers.profiles.load_profiles import load_profiles
from providers.request_fields import class_label
from providers.tasks.split_inputs import MOST_LISTED
from providers.tasks.task_fields import TASK_FIELDS
from providers.unified_request import Operation, Task
from tests.docs.marked_pages import DOCS, replaced

PAGE: Final = DOCS / "reference" / "vendors" / "index.md"
BEGIN: Final = "<!-- matrix: written by `python -m tests.docs.matrix_page` -->"
END: Final = "<!-- end of matrix -->"

_HEADINGS: Final = {Operation.COMPLETIONS: "Completions", Operation.CHAT: "Chat completions"}

_TASK_HEADINGS: Final = {Task.EMBEDDINGS: "Embeddings", Task.RERANK: "Rerank"}

MatrixRow = MatrixEntry | TaskMatrixEntry


@cache
def reference() -> str:
    """Return the matrix as Markdown, endpoint by endpoint."""
    matrix = list(matrix_entries(load_profiles().values()))
    tables = [
        _section(operation, [entry for entry in matrix if entry.operation is operation]) for operation in Operation
    ]
    tasks = list(task_entries(load_profiles().values()))
    tables += [_task_section(task, [entry for entry in tasks if entry.task is task]) for task in TASK_FIELDS]
    return "\n".join([f"{summarize(matrix)}.", *tables])


def updated(page: str) -> str:
    """Return the page with the matrix between its marks. Raises ValueError if a mark is missing."""
    return replaced(page, BEGIN, reference(), END)


def _section(operation: Operation, matrix: Sequence[MatrixEntry]) -> str:
    """Return the matrix of one operation; models without such an endpoint are named before it and left out of it."""
    opened = [entry for entry in matrix if not entry.closed]
    names = [name for name, feature in FEATURES.items() if operation in feature.operations]
    lines = [_line(["feature", "class", *Support]), _line(["---"] * (len(Support) + 2))]
    lines += [
        _line([f"`{name}`", class_label(FEATURES[name].field), *_vendors_by_support(name, opened)]) for name in names
    ]
    without = ", ".join(_listed([entry for entry in matrix if entry.closed], matrix))
    note = [f"Not with {without}: everything is refused there.\n"] if without else []
    return "\n".join([f"\n### {_HEADINGS[operation]}\n", *note, *lines])


def _task_section(task: Task, matrix: Sequence[TaskMatrixEntry]) -> str:
    """Return the matrix of one task, and the limits of one call. Other vendors refuse the task."""
    lines = [_line(["field", "class", *Support]), _line(["---"] * (len(Support) + 2))]
    lines += [
        _line([f"`{name}`", each, *_vendors_by_support(name, matrix)]) for name, each in TASK_FIELDS[task].items()
    ]
    vendors = ", ".join(dict.fromkeys(entry.profile for entry in matrix))
    same: dict[tuple[str, str], list[TaskMatrixEntry]] = {}
    for entry in matrix:
        if entry.wire.most is not None:
            same.setdefault((entry.profile, _limit(entry.wire)), []).append(entry)
    limits = [f"{_listed(entries, matrix)[0]} {limit}" for (_, limit), entries in same.items()]
    notes = [f"With {vendors}.\n", f"Most in one call: {', '.join(limits)}; the others as many as a request has.\n"]
    if task is Task.EMBEDDINGS:
        notes.append(
            f"At most {MOST_LISTED} wherever `encoding_format` is emulated, since the vectors come as numbers there; "
            "the others get a request for base64, whatever the client requests.\n"
        )
    return "\n".join([f"\n### {_TASK_HEADINGS[task]}\n", *notes, *lines])


def _limit(wire: TaskWire) -> str:
    tokens = "" if wire.most_tokens is None else f" of {wire.most_tokens} tokens together"
    return f"{wire.most}{tokens}"


def _vendors_by_support(feature: str, matrix: Sequence[MatrixRow]) -> list[str]:
    """Return the vendors of a feature for each kind of cell. The kind with the most vendors reads `the others`."""
    found = [
        _listed([entry for entry in matrix if entry.cells[feature].support is support], matrix) for support in Support
    ]
    most = max(range(len(found)), key=lambda position: len(found[position]))
    others = "the others" if sum(map(bool, found)) > 1 else "everywhere"
    return [others if position == most else ", ".join(names) for position, names in enumerate(found)]


def _listed(chosen: Sequence[MatrixRow], matrix: Sequence[MatrixRow]) -> list[str]:
    """Return the vendors of the chosen entries, with model names if only some of a vendor's models are chosen."""
    names: list[str] = []
    for profile in dict.fromkeys(entry.profile for entry in chosen):
        models = [entry.model for entry in chosen if entry.profile == profile]
        whole = len(models) == sum(entry.profile == profile for entry in matrix)
        names.append(profile if whole else f"{profile} ({', '.join(models)})")
    return names


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
