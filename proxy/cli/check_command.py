"""`dragoman check`: print every problem of a configuration, one per line."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from config.checks.check_answer_cache import cache_sections
from config.problem import Problem
from config.reading.table_files import DISK, Store
from proxy.cli.terminal import FAILED, Style, paint
from proxy.process.load_table import LoadedTable, Source, TableRefused
from proxy.process.table_checks.check_redis import redis_warnings
from proxy.routing.route_settings import CACHED_REQUESTS, cache_rules

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One problem and its severity. An error makes the configuration unusable. A note is not a problem: it states the
    effect of a setting."""

    problem: Problem
    severity: Severity


Form = Callable[[Sequence[Finding], str | None], Iterator[str]]
"""Formats the findings as lines of output. For a configuration that can be served, it also gets a summary."""


def check(source: Source, warnings_are: Severity, form: Form) -> int:
    """Load the configuration, build everything that serving it needs, print the findings, and return 0 if it can be
    served.

    No vendor is called: the check only verifies that credentials exist. If Redis responds at once, its eviction policy
    is checked too.
    """
    findings, summary = examine(source, warnings_are, asked=lambda table: redis_warnings(table.loaded))
    for line in form(findings, summary):
        print(line)
    return FAILED if summary is None else 0


def examine(
    source: Source,
    warnings_are: Severity,
    store: Store = DISK,
    asked: Callable[[LoadedTable], Iterable[Problem]] = lambda table: (),
) -> tuple[list[Finding], str | None]:
    """Return the problems of a configuration, sorted, and its summary; the summary is `None` if it cannot be served.
    `asked` returns the warnings of other systems about a configuration that can be served."""
    try:
        table = source.load_to_serve(store)
    except TableRefused as error:
        findings = [Finding(problem, "error") for problem in error.problems]
        findings += [Finding(problem, warnings_are) for problem in error.warnings]
        return sorted(findings), None
    findings = [Finding(problem, warnings_are) for problem in (*table.warnings, *asked(table))]
    summary = None if findings and warnings_are == "error" else summarise(table)
    return sorted([*findings, *cache_notes(table)]), summary


def cache_notes(table: LoadedTable) -> Iterator[Finding]:
    """Yield a note on the effect of each `cache` section of a configuration."""
    loaded = table.loaded
    for path, section in cache_sections(loaded.config):
        rules = cache_rules(section)
        effect = (
            "no responses are cached" if rules is None else f"responses are cached {rules.words}, for {CACHED_REQUESTS}"
        )
        yield Finding(Problem.at(loaded.locate(path), path, effect), "note")


def summarise(table: LoadedTable) -> str:
    """Return a one-line summary with the numbers of vendors, models and other entries of a configuration."""
    config = table.loaded.config
    counts = {
        "vendor": len(config.vendors),
        "model": len(config.models),
        "deployment": sum(1 for _ in table.snapshot.targets()),
        "route": len(config.routes),
        "team": len(config.teams),
    }
    if table.plugins:
        counts["plugin"] = len(table.plugins)
    return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items())


_SEVERITY_STYLES: Final[Mapping[Severity, Style]] = {"warning": Style.YELLOW, "note": Style.DIM}


def text_lines(findings: Sequence[Finding], summary: str | None) -> Iterator[str]:
    """Yield `FILE:LINE:COL path: message`, the format that editors and terminals turn into links."""
    for finding in findings:
        problem = finding.problem
        if finding.severity in _SEVERITY_STYLES:
            label = paint(finding.severity, _SEVERITY_STYLES[finding.severity])
            problem = replace(problem, message=f"{label}: {problem.message}")
        yield str(problem)
    if summary is not None:
        yield f"{paint('ok', Style.GREEN)}: {summary}"


def json_lines(findings: Sequence[Finding], summary: str | None) -> Iterator[str]:
    """Yield one JSON list of objects. It is empty if there are no findings."""
    yield json.dumps(
        [
            {
                "severity": finding.severity,
                "file": finding.problem.file,
                "line": finding.problem.line,
                "column": finding.problem.column,
                "path": finding.problem.path,
                "message": finding.problem.message,
            }
            for finding in findings
        ],
        indent=2,
    )


def github_lines(findings: Sequence[Finding], summary: str | None) -> Iterator[str]:
    """Yield workflow commands, which GitHub Actions shows beside the changed lines.

    The runner decodes `%`, CR and LF in the message, and also `:` and `,` in a property (GitHub's page on workflow
    commands, November 2026).
    """
    for finding in findings:
        problem = finding.problem
        place = f"file={_property(problem.file)},line={problem.line},col={problem.column}"
        message = f"{problem.path}: {problem.message}" if problem.path else problem.message
        yield f"::{_COMMANDS.get(finding.severity, finding.severity)} {place}::{_data(message)}"
    if summary is not None:
        yield f"ok: {summary}"


_COMMANDS: Final[Mapping[Severity, str]] = {"note": "notice"}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


FORMS: Mapping[str, Form] = {"text": text_lines, "json": json_lines, "github": github_lines}
"""Output formats by the value of `--output`."""
