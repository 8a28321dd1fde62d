"""The program `dragoman`: run a command, map its end to an exit status, and print a line for an operator's mistake."""

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence

from config.problem import ConfigError
from proxy.cli.arguments import Runner, argument_parser, serve
from proxy.cli.terminal import FAILED, CommandError, require_output

INTERRUPTED = 130
"""The exit status that shells report for a program that Ctrl-C ended."""

CLOSED_PIPE = 141
"""The exit status that shells report if a program's output was closed, as in `dragoman routes | head`."""

OUTPUT_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""The errors of an output that cannot be written. Errors of files that a command opens also have a file name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0 done, 1 failed, 2 wrong usage. Raises SystemExit as argparse does."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    status = FAILED
    try:
        status = _run(arguments)
        _flush()
    # A task group may have wrapped each of these exceptions in a group.
    except* BrokenPipeError:
        _discard_output()
        status = CLOSED_PIPE
    except* KeyboardInterrupt:
        status = INTERRUPTED
    except* OSError as failed:
        status = _output_failed(failed)
    return status


def _run(arguments: Sequence[str] | None) -> int:
    try:
        args = _parsed(arguments)
        run: Runner = args.run
        # The gateway also runs without an output for its log. Every other command needs its output.
        if run is not serve:
            require_output()
        return run(args)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return FAILED
    except CommandError as error:
        print(f"dragoman: {error}", file=sys.stderr)
        return error.status


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    try:
        return argument_parser().parse_args(arguments)
    except SystemExit:
        _flush()  # the version or a help text
        raise


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _output_failed(failed: "ExceptionGroup[OSError]") -> int:
    """Return the exit status if the output could not be written. Raises any other error again."""
    error: BaseException = failed
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, OSError) or error.errno not in OUTPUT_ERRORS or error.filename is not None:
        raise failed
    _discard_output()
    print(f"dragoman: cannot write the output: {error.strerror}", file=sys.stderr)
    return FAILED


def _discard_output() -> None:
    """Redirect the interpreter's last flush to the null device, which accepts every write."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
