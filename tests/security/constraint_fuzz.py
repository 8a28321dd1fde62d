"""Random schemas and patterns of the kinds that freeze validators: names, dynamic references, nested counts, classes,
look-around; each with a response to check. The same seed gives the same cases.

`python -m tests.security.constraint_fuzz [CASES] [SEED]` runs them and prints their cost.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from random import Random

import orjson

from providers.constraints.compiled_checks import first_invalid_keyword
from providers.constraints.constraint_styles import Unenforceable, constraint_fields
from providers.constraints.json_schema import schema_problem
from providers.constraints.regex_parse import MalformedPattern, parse
from providers.constraints.style_table import STYLES
from providers.emulation.check_answer import required_check
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Guided, Params
from proxy.off_loop.answer_check_pool import AnswerChecks, TooCostly

ATOMS: Sequence[str] = (
    *("a", "b", ".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"[^\Da]", r"[\d\W]", "[a-z]", r"[^\s\S]"),
    *("(?=a)", "(?!a)", "(?<=a)", "(?<!b)", r"\b", "^", "$", r"\p{L}", r"\x41", r"\u{1F600}"),
    *("(?i)", "é"),
)
QUANTIFIERS: Sequence[str] = ("*", "+", "?", "{2}", "{1,50}", "{300}", "{2000}", "{0,}", "*?", "++", "{100000}")
KEYWORDS: Sequence[str] = ("allOf", "anyOf", "oneOf")
SINGLE: Sequence[str] = ("not", "if", "then", "else", "items", "contains", "propertyNames", "unevaluatedItems")
SINGLE_TOO: Sequence[str] = ("additionalProperties", "unevaluatedProperties")
NAMING: Sequence[str] = ("$anchor", "$dynamicAnchor")
REFERRING: Sequence[str] = ("$ref", "$dynamicRef", "$recursiveRef")
DRAFTS: Sequence[str] = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-04/schema#",
)


@dataclass(frozen=True, slots=True)
class FuzzCase:
    """One constraint, and the response that is checked against it."""

    guided: Guided
    answer: str


@dataclass(frozen=True, slots=True)
class CaseCost:
    """The cost of a case: CPU seconds on this thread, where the event loop would be; whether the native code overran
    its stack; and the outcome in a word."""

    loop_seconds: float
    overran: bool
    end: str


def pattern(draw: Random, depth: int = 0) -> str:
    """Return a pattern, well-formed or not."""
    parts = []
    for _ in range(draw.randint(1, 5)):
        part = draw.choice(ATOMS)
        if depth < 3 and draw.random() < 0.3:
            opening = draw.choice(("(", "(?:", "(?<n>", "(?=", "(?>"))
            part = f"{opening}{pattern(draw, depth + 1)}{draw.choice(('', '|' + draw.choice(ATOMS)))})"
        elif draw.random() < 0.05:
            part = f"[{draw.choice(('', '^'))}{draw.choice(ATOMS[:6]) * draw.choice((1, 2, 5, 400))}]"
        parts.append(part + (draw.choice(QUANTIFIERS) if draw.random() < 0.6 else ""))
    return "".join(parts)


@lru_cache(maxsize=1)
def pool() -> tuple[str, ...]:
    """Return a pool of patterns, nine in ten of them well-formed. Of random patterns, most are not."""
    draw = Random(0)
    found: list[str] = []
    while len(found) < 400:
        each = pattern(draw)
        try:
            parse(each)
        except MalformedPattern:
            if draw.random() < 0.9:
                continue
        found.append(each)
    return tuple(found)


def schema(draw: Random) -> JsonObject:
    """Return a schema of named definitions that refer to one another."""
    count = draw.choice((1, 3, 10, 60))
    definitions: JsonObject = {}
    draft = draw.choice(("", "", *DRAFTS))
    for at in range(count):
        naming = "$id" if "-07" in draft or "-04" in draft else draw.choice(NAMING)
        name = f"#a{at}" if naming == "$id" else f"a{at}"
        definitions[f"d{at}"] = {naming: name if draw.random() < 0.995 else "a0", **_part(draw, at, count, 0)}
    root = _part(draw, -1, count, 0)
    if draft:
        root["$schema"] = draft
    return {**root, "$defs": definitions}


def _reference(draw: Random, at: int, count: int) -> JsonObject:
    # Mostly forward references, as in chains that double at each step; sometimes any.
    to = min(at + 1, count - 1) if draw.random() < 0.8 else draw.randrange(count)
    where = draw.choice((f"#a{to}", f"#/$defs/d{to}", "#", f"#a{to}"))
    return {draw.choice(REFERRING) if draw.random() < 0.3 else "$ref": where}


def _part(draw: Random, at: int, count: int, depth: int) -> JsonObject:
    part: JsonObject = {}
    for _ in range(draw.randint(1, 3)):
        match draw.randrange(7):
            case 0 | 1:
                keyword = draw.choice(KEYWORDS)
                part[keyword] = [_child(draw, at, count, depth) for _ in range(draw.randint(1, 3))]
            case 2:
                part[draw.choice((*SINGLE, *SINGLE_TOO))] = _child(draw, at, count, depth)
            case 3:
                part["properties"] = {name: _child(draw, at, count, depth) for name in "ab"}
            case 4:
                part["pattern"] = draw.choice(pool())
            case 5:
                part["patternProperties"] = {draw.choice(pool()): _child(draw, at, count, depth)}
            case _:
                part.update(_reference(draw, at, count))
    return part


def _child(draw: Random, at: int, count: int, depth: int) -> JsonValue:
    if depth >= 3 or draw.random() < 0.5:
        ends: Sequence[JsonValue] = (True, False, {"type": "string"})
        return _reference(draw, at, count) if draw.random() < 0.8 else draw.choice(ends)
    return _part(draw, at, count, depth + 1)


def answer(draw: Random) -> str:
    """Return a response text that is deep, or wide, or a word."""
    match draw.randrange(4):
        case 0:
            depth = draw.choice((5, 60, 200, 900))
            return "[" * depth + "]" * depth
        case 1:
            depth = draw.choice((5, 60, 150))
            return '{"a":' * depth + "1" + "}" * depth
        case 2:
            return orjson.dumps(["a" * draw.choice((5, 500)) + "!" for _ in range(draw.choice((5, 500)))]).decode()
        case _:
            return "ab" * draw.choice((1, 1000))


def cases(count: int, seed: int) -> Iterator[FuzzCase]:
    """Yield `count` cases."""
    draw = Random(seed)
    for _ in range(count):
        guided = Guided("regex", draw.choice(pool())) if draw.random() < 0.3 else Guided("json", schema(draw))
        yield FuzzCase(guided, answer(draw))


def read(guided: Guided) -> bool:
    """Handle a constraint as a surface and the dialects do on the event loop. Return whether it would be forwarded."""
    match guided.value:
        case dict(found):
            if first_invalid_keyword(found) is not None or schema_problem(found) is not None:
                return False
        case _:
            try:
                parse(guided.value_text)
            except MalformedPattern:
                return False
    for style, endpoints in STYLES.items():
        for encoded in endpoints.values() if style in _TRANSLATING else ():
            _quietly(partial(constraint_fields, encoded, guided))
    return True


_TRANSLATING = ("llamacpp", "openai", "sglang", "fireworks", "tgi")


def _quietly(work: Callable[[], object]) -> None:
    try:
        work()
    except Unenforceable:
        return


async def run(checks: AnswerChecks, case: FuzzCase) -> CaseCost:
    """Take a case through all steps of the gateway."""
    before = time.thread_time()
    sent = read(case.guided)
    check = None
    try:
        check = required_check(Params(guided=case.guided)) if sent else None
        end = "refused" if check is None else "checked"
    except Unenforceable:
        end = "uncheckable"
    spent = time.thread_time() - before
    if check is None:
        return CaseCost(spent, False, end)
    try:
        problem = await checks.problem(check, "team")
        if problem is not None:
            return CaseCost(spent, "deeply" in problem, "uncompilable")
        await checks.breach(check, case.answer, "team")
    except TooCostly as error:
        return CaseCost(spent, "deeply" in str(error), "too costly")
    return CaseCost(spent, False, end)


def resident() -> int:
    """Return the bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


async def main(count: int, seed: int) -> None:
    checks = AnswerChecks()
    ends: dict[str, int] = {}
    worst = 0.0
    for case in cases(count, seed):
        cost = await run(checks, case)
        ends[cost.end] = ends.get(cost.end, 0) + 1
        if cost.loop_seconds > worst or cost.overran:
            worst = max(worst, cost.loop_seconds)
            told = "the stack overran" if cost.overran else cost.end
            print(f"{1000 * cost.loop_seconds:.1f} ms, {told}: {str(case.guided.value)[:200]}")
    await checks.aclose()
    print(ends)


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(main(*(arguments + [500, 1][len(arguments) :])))
