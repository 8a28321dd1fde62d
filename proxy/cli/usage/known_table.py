"""The configuration of read-only commands. They also work if unrelated parts of it are invalid."""

import sys

from config.load_config import Loaded
from proxy.process.load_table import Source


def known_table(source: Source) -> Loaded:
    """Return the valid parts of a configuration, and print its problems to standard error. Raises TableRefused."""
    loaded, problems = source.load_for_queries()
    for problem in problems:
        print(f"dragoman: warning: {problem}", file=sys.stderr)
    return loaded
