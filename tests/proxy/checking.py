"""Answers checked in this process: for tests that have no sockets, or are not about what a check may cost."""

from providers.guided import Unenforceable
from providers.verify import AnswerCheck, verifier
from proxy.off_loop import OffLoop


class InlineChecks:
    """See `proxy.off_loop.AnswerChecker`. `owners` are those that it worked for."""

    def __init__(self) -> None:
        self.owners: list[str] = []

    async def problem(self, check: AnswerCheck, owner: str) -> str | None:
        """Why the constraint does not compile."""
        try:
            verifier(check)
        except Unenforceable as error:
            return error.reason
        return None

    async def breach(self, check: AnswerCheck, text: str, owner: str) -> str | None:
        """Why the text breaks it."""
        self.owners.append(owner)
        return verifier(check)(text)


def off_loop() -> OffLoop:
    """Work off the loop for a dispatcher that is given light requests."""
    return OffLoop(InlineChecks())
