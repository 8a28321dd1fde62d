"""The capability matrix in `providers/README.md`. Never a fact that is not in the matrix.

`python -m providers.reference` rewrites the README between its marks.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from providers.capabilities import FEATURES, Support
from providers.matrix import MatrixRow, rows, summary
from providers.profiles import load_profiles
from providers.unified import Operation

README: Final = Path(__file__).parent / "README.md"
BEGIN: Final = "<!-- matrix: written by `python -m providers.reference` -->"
END: Final = "<!-- end of matrix -->"

_HEADINGS: Final = {Operation.COMPLETIONS: "Completions", Operation.CHAT: "Chat completions"}


def reference() -> str:
    """The matrix as Markdown, a table for each endpoint that clients call."""
    matrix = list(rows(load_profiles().values()))
    tables = [_section(operation, [row for row in matrix if row.operation is operation]) for operation in Operation]
    return "\n".join([f"{summary(matrix)}.", *tables])


def updated(readme: str) -> str:
    """The README with the matrix between its marks; raises ValueError when a mark is missing."""
    before, found_begin, rest = readme.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not (found_begin and found_end):
        raise ValueError("the README has lost a mark of the matrix")
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


def _section(operation: Operation, matrix: Sequence[MatrixRow]) -> str:
    """A table; models that have no such endpoint are named before it and do not stand in it."""
    opened = [row for row in matrix if not row.closed]
    names = [name for name, feature in FEATURES.items() if operation in feature.operations]
    lines = [_line(["feature", *Support]), _line(["---"] * (len(Support) + 1))]
    lines += [_line([f"`{name}`", *_places(name, opened)]) for name in names]
    without = ", ".join(_listed([row for row in matrix if row.closed], matrix))
    note = [f"Not with {without}: everything is refused there.\n"] if without else []
    return "\n".join([f"\n### {_HEADINGS[operation]}\n", *note, *lines])


def _places(feature: str, matrix: Sequence[MatrixRow]) -> list[str]:
    """Where a feature is each kind of cell; the kind with the most vendors is that of the others."""
    found = [_listed([row for row in matrix if row.cells[feature].support is support], matrix) for support in Support]
    most = max(range(len(found)), key=lambda place: len(found[place]))
    others = "the others" if sum(map(bool, found)) > 1 else "everywhere"
    return [others if place == most else ", ".join(names) for place, names in enumerate(found)]


def _listed(chosen: Sequence[MatrixRow], matrix: Sequence[MatrixRow]) -> list[str]:
    """The vendors of some rows, those of which only some models are among them with these."""
    names: list[str] = []
    for profile in dict.fromkeys(row.profile for row in chosen):
        models = [row.model for row in chosen if row.profile == profile]
        whole = len(models) == sum(row.profile == profile for row in matrix)
        names.append(profile if whole else f"{profile} ({', '.join(models)})")
    return names


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
