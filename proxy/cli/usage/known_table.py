"""The table of commands that only ask what there is: they work although parts of it are wrong that they do not need."""

import sys

from config.load_config import Loaded
from proxy.process.load_table import Source


def known_table(source: Source) -> Loaded:
    """Return what is known of a table, and print its other faults to standard error. Raises TableRefused."""
    loaded, problems = source.load_for_queries()
    for problem in problems:
        print(f"dragoman: warning: {problem}", file=sys.stderr)
    return loaded
