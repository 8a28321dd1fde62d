"""Checks of responses in this process instead of a pool of processes."""

from providers.constraints.constraint_styles import Unenforceable
from providers.emulation.check_answer import AnswerCheck, compile_check
from proxy.off_loop.request_threads import OffLoop


class InlineChecks:
    """An `AnswerChecker` that works in this process. `owners` lists the owners that it worked for."""

    def __init__(self) -> None:
        self.owners: list[str] = []

    async def problem(self, check: AnswerCheck, owner: str) -> str | None:
        try:
            compile_check(check)
        except Unenforceable as error:
            return error.reason
        return None

    async def breach(self, check: AnswerCheck, text: str, owner: str) -> str | None:
        self.owners.append(owner)
        return compile_check(check)(text)


def off_loop() -> OffLoop:
    """Return the off-loop work of a dispatcher that is given light requests."""
    return OffLoop(InlineChecks())
