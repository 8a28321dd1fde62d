"""What becomes of reloads of the table."""

from dataclasses import dataclass

from config.problem import Problem


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """The digest in force after a reload, and the problems for which the new table was refused."""

    digest: str
    problems: tuple[Problem, ...] = ()
