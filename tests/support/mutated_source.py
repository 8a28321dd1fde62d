"""The mutants of a file: its source with one small fault each.

An operator is swapped, a constant changed, a condition forced, a `not` left out, a returned value dropped, a statement
deleted. Code whose change no test of behaviour can notice is unchanged: docstrings, types, `__slots__`, decorators,
texts of logs and other formatted texts.
"""

import ast
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, Final, TypeAlias

LONGEST_TEXT: Final = 50
"""The most characters of source in the name of a mutant."""

SWAPS: Final[Mapping[type[ast.AST], Sequence[Callable[[], Any]]]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitAnd: (ast.BitOr,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
}
"""The operator that replaces each operator."""

LOGGED: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
"""Methods whose arguments are texts for operators."""

TYPE_NAME: Final = re.compile(r"_?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
"""The name of a type, to which a module assigns an alias."""

Change: TypeAlias = tuple[str, ast.expr | ast.stmt, str]
"""The kind of a change, the node that is replaced, and its new text."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a file: its bytes from `start` to `end`, `old`, become `new`. `kind` is the sort of change."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    old: str
    new: str

    def name(self) -> str:
        """Return the change as it is printed."""
        return f"{self.file}:{self.line} {self.kind}: {_short(self.old)} -> {_short(self.new)}"

    def applied(self, source: bytes) -> bytes:
        """Return the file with the change."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """Return the mutants of a file that Python can compile, in the order of their positions."""
    starts = [0, *(match.end() for match in re.finditer(b"\n", source))]
    found = []
    for kind, node, new in _changes(ast.parse(source), inside=False):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        mutant = Mutant(file, node.lineno, kind, start, end, source[start:end].decode(), new)
        if _compiles(mutant.applied(source)):
            found.append(mutant)
    return sorted(found, key=_place)


def sample(mutants: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """Return `size` of the mutants, about as many of each kind, in the order of files and positions."""
    chance = random.Random(seed)
    kinds: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        kinds.setdefault(mutant.kind, []).append(mutant)
    piles = [chance.sample(kinds[kind], len(kinds[kind])) for kind in sorted(kinds)]
    dealt = [mutant for mutant in chain.from_iterable(zip_longest(*piles)) if mutant is not None]
    return sorted(dealt[:size], key=_place)


def _place(mutant: Mutant) -> tuple[str, int, int, str, str]:
    return mutant.file, mutant.start, mutant.end, mutant.kind, mutant.new


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else f"{line[:LONGEST_TEXT]}..."


def _compiles(source: bytes) -> bool:
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _changes(node: ast.AST, inside: bool) -> Iterator[Change]:
    """Yield the changes of a node and its children. Delete statements only inside of functions: elsewhere the only
    effect is a missing name."""
    inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    if isinstance(node, ast.expr):
        yield from _changed_expression(node)
    if isinstance(node, ast.stmt):
        yield from _changed_statement(node)
    if inside and _is_action(node):
        assert isinstance(node, ast.stmt)
        yield "statement", node, "pass"
    for child in _seen(node):
        yield from _changes(child, inside)


def _seen(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node whose changes a test of behaviour can notice."""
    match node:
        case (
            ast.JoinedStr()
            | ast.Expr(value=ast.Constant())
            | ast.AnnAssign(annotation=ast.Name(id="TypeAlias"))
            | ast.Assign(targets=[ast.Name(id="__slots__" | "__all__" | "__match_args__")])
            | ast.Subscript(value=ast.Name(id="Literal"))
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))
        ):
            return
        case ast.Assign(targets=[ast.Name(id=name)]) if TYPE_NAME.fullmatch(name):
            return
        case ast.Call(func=ast.Attribute(attr=attr)) if attr in LOGGED:
            return
        case ast.Call(func=ast.Name(id="cast"), args=[_, value]):
            yield value
        case ast.Call(func=ast.Name(id="isinstance"), args=[value, _]):
            yield value
        case ast.AnnAssign():
            yield from filter(None, (node.target, node.value))
        case ast.ClassDef():
            yield from node.body
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from chain(node.args.defaults, filter(None, node.args.kw_defaults), node.body)
        case _:
            yield from ast.iter_child_nodes(node)


def _changed_expression(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.Compare(left, ops, comparators):
            for changed in _swapped_one(ops):
                yield "comparison", node, f"({ast.unparse(ast.Compare(left, changed, comparators))})"
        case ast.BoolOp(operator, values):
            for swapped in SWAPS[type(operator)]:
                yield "boolean", node, f"({ast.unparse(ast.BoolOp(swapped(), values))})"
        case ast.BinOp(left, operator, right):
            for swapped in SWAPS.get(type(operator), ()):
                yield "arithmetic", node, f"({ast.unparse(ast.BinOp(left, swapped(), right))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", node, f"({ast.unparse(operand)})"
        case ast.IfExp(test=test):
            yield from _forced(test)
        case ast.Constant(value=bool() | int() | float() | str() | bytes() as value):
            yield "constant", node, repr(_another(value))
        case _:
            pass


def _swapped_one(operators: Sequence[ast.cmpop]) -> Iterator[list[ast.cmpop]]:
    for place, operator in enumerate(operators):
        for swapped in SWAPS[type(operator)]:
            yield [*operators[:place], swapped(), *operators[place + 1 :]]


def _forced(test: ast.expr) -> Iterator[Change]:
    yield "condition", test, "True"
    yield "condition", test, "False"


def _another(value: object) -> object:
    """Return another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case bytes():
            return value + b"x"
        case _:
            return f"{value}x"


def _changed_statement(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return", node, "return None"
        case ast.If(test=test) if ast.unparse(test) != "TYPE_CHECKING":
            yield from _forced(test)
        case ast.AugAssign(target, operator, value):
            for swapped in SWAPS.get(type(operator), ()):
                yield "arithmetic", node, ast.unparse(ast.AugAssign(target, swapped(), value))
        case _:
            pass


def _is_action(node: ast.AST) -> bool:
    """Return whether a statement has an effect and its deletion leaves no name undefined."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr))):
            return attr not in LOGGED
        case (
            ast.Expr(value=ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom())
            | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
            | ast.AnnAssign(target=ast.Attribute() | ast.Subscript(), value=ast.expr())
            | ast.AugAssign()
            | ast.Raise()
            | ast.Delete()
            | ast.Break()
            | ast.Continue()
        ):
            return True
        case _:
            return False
