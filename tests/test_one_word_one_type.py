"""One word, one type: a parameter or field with one of these names has the same type everywhere in `proxy`."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support.looped import looped

ROOT: Final = Path(__file__).resolve().parents[1]

WORDS: Final[Mapping[str, frozenset[str]]] = {
    "attempt": frozenset({"Attempt"}),
    "call": frozenset({"PlannedCall", "C"}),  # C: any of the calls that are made side by side
    "completion": frozenset({"Completion"}),
    "deadlines": frozenset({"Deadlines", "set[Deadlines]"}),
    "dispatcher": frozenset({"Dispatcher"}),
    "exchange": frozenset({"Exchange", "ClientExchange", "TextExchange", "PassedExchange"}),
    "job": frozenset(),
    "plan": frozenset({"Plan"}),
    "planned": frozenset(),
    "prepared": frozenset({"CallPlan", "TaskCalls", "PassedCall", "Prepared", "P", "P_in"}),  # as for `Prepared`
    "record": frozenset({"RequestRecord", "logging.LogRecord"}),  # as the standard library's formatters name it
    "renderer": frozenset({"Renderer", "StoringRenderer"}),
    "snapshot": frozenset({"Snapshot"}),
}
"""The types of each word: one, with the protocols that it has and the subclasses and type variables of it."""


def annotated(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the names of parameters and fields of classes, with their annotations and lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for given in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                if given.annotation is not None:
                    yield given.arg.lstrip("_"), type_named(given.annotation), given.lineno
        elif isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    yield each.target.id.lstrip("_"), type_named(each.annotation), each.lineno


def type_named(annotation: ast.expr) -> str:
    """Return the type of an annotation without `None` and without parameters, but for sets."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = [side for side in (annotation.left, annotation.right) if ast.unparse(side) != "None"]
        return " | ".join(map(type_named, sides))
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) != "set":
        return ast.unparse(annotation.value)
    return ast.unparse(annotation)


def uses() -> Mapping[str, list[tuple[str, str]]]:
    """Return each word's uses: the type, and the place."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted((ROOT / "proxy").rglob("*.py")):
        for name, kind, line in annotated(path.read_text(encoding="utf-8")):
            if name in WORDS:
                found[name].append((kind, f"{path.relative_to(ROOT).as_posix()}:{line}"))
    return found


@pytest.mark.smoke
def test_a_word_has_one_type() -> None:
    found = uses()
    others = [
        f"{place}: {name}: {kind}" for name, types in WORDS.items() for kind, place in found[name] if kind not in types
    ]
    assert not others, "\n" + "\n".join(others)


@looped(
    ("source", "expected"),
    [
        ("def f(plan: Plan, *, call: 'Call | None' = None): ...", [("plan", "Plan"), ("call", "Call")]),
        ("class A:\n    _record: dict[str, int]\n    x = 1", [("record", "dict")]),
        ("async def f(a, b: set[int]): ...", [("b", "set[int]")]),
        ("def f(a: int | str): ...", [("a", "int | str")]),
    ],
)
def test_annotations_are_found_in_parameters_and_fields(source: str, expected: list[tuple[str, str]]) -> None:
    assert [(name, kind) for name, kind, _ in annotated(source)] == expected
