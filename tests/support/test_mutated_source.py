"""The changes of a file, and a sample that depends only on the seed."""

import ast

from tests.support.looped import looped
from tests.support.mutated_source import Mutant, mutants_of, sample


def changes(text: str) -> list[tuple[str, str]]:
    return [(mutant.old, mutant.new) for mutant in mutants_of("a.py", text.encode())]


@looped(
    ("text", "expected"),
    [
        ("a < b", [("a < b", "(a <= b)"), ("a < b", "(a >= b)")]),
        ("a == b is c", [("a == b is c", "(a != b is c)"), ("a == b is c", "(a == b is not c)")]),
        ("a and b", [("a and b", "(a or b)")]),
        ("a + b", [("a + b", "(a - b)")]),
        ("a += b", [("a += b", "a -= b")]),
        ("not a", [("not a", "(a)")]),
        ("a = 1", [("1", "2")]),
        ("a = True", [("True", "False")]),
        ("a = 'é'", [("'é'", "'éx'")]),
        ("a = b''", [("b''", "b'x'")]),
        ("a = b if c else d", [("c", "False"), ("c", "True")]),
        ("if a: b", [("a", "False"), ("a", "True")]),
        ("def f():\n return a", [("return a", "return None")]),
        ("def f():\n a()", [("a()", "pass")]),
        ("def f():\n raise A", [("raise A", "pass")]),
        ("def f():\n a.b = c", [("a.b = c", "pass")]),
        ("def f():\n a += b", [("a += b", "a -= b"), ("a += b", "pass")]),
    ],
)
def test_each_kind_of_change(text: str, expected: list[tuple[str, str]]) -> None:
    assert changes(text) == expected


@looped(
    "text",
    [
        '"""A docstring."""',
        'a: Literal["b"]',
        'a: TypeAlias = "b | c"',
        "Name = int | str",
        'a = Literal["b"]',
        '__slots__ = ("a",)',
        "if TYPE_CHECKING: pass",
        "@dataclass(frozen=True)\nclass A: pass",
        "class A(B, total=False): pass",
        "def f(a: int | None) -> int | None: pass",
        "def f():\n log.info('a', 1)",
        "a = f'b {c + 1}'",
        "cast(int | None, a)",
        "isinstance(a, int | str)",
        "def f():\n return None",
        "a()",
        "def f():\n a = b",
    ],
)
def test_what_no_test_could_see_is_left_alone(text: str) -> None:
    assert changes(text) == []


def test_a_place_counts_bytes_and_lines() -> None:
    source = "é = 'é'\n\nif é == a:\n    pass\n".encode()
    (first, *_, last) = (mutant.applied(source).decode() for mutant in mutants_of("a.py", source))
    assert first == "é = 'éx'\n\nif é == a:\n    pass\n"
    assert last == "é = 'é'\n\nif True:\n    pass\n"


def test_each_mutant_is_another_program() -> None:
    source = b"def f(a):\n    if a > 1 and not a == 5:\n        a -= 1\n        return a * 2\n    return 'none'\n"
    programs = [ast.dump(ast.parse(mutant.applied(source))) for mutant in mutants_of("a.py", source)]
    assert len({ast.dump(ast.parse(source)), *programs}) == len(programs) + 1


def test_what_does_not_compile_is_no_mutant() -> None:
    assert changes("match a:\n case {'': 1, 'x': b}: pass") == [("1", "2"), ("'x'", "'xx'")]


def test_a_name_is_one_line() -> None:
    (mutant,) = mutants_of("a.py", b"\na = (not\n  b)")
    assert mutant.name() == "a.py:2 not: not b -> (b)"
    long = Mutant("a.py", 1, "constant", 0, 60, "a" * 60, "b")
    assert long.name() == f"a.py:1 constant: {'a' * 50}... -> b"


def test_a_sample_has_each_kind_and_depends_on_the_seed_alone() -> None:
    mutants = mutants_of("a.py", b"a = [1, 2, 3, 4, 5, 6, 7, 8, 9]\nb = not c\nd = e and f\n")
    chosen = sample(mutants, 5, seed=1)
    assert [mutant.kind for mutant in chosen] == ["constant"] * 3 + ["not", "boolean"]
    assert sample(mutants, 5, seed=1) == chosen
    assert any(sample(mutants, 5, seed=seed) != chosen for seed in range(2, 10))


def test_a_sample_has_no_more_than_there_are() -> None:
    mutants = mutants_of("a.py", b"a = 1\n")
    assert sample(mutants, 40, seed=1) == mutants
