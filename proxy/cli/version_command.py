"""`dragoman version`: print the version, the Python and the system, without importing the gateway."""

import json
import platform

from proxy.version import VERSION


def version_text() -> int:
    """Print the version as a line of text."""
    print(f"dragoman {VERSION}")
    return 0


def version_json() -> int:
    """Print a JSON object with the version, the Python and the system."""
    facts = {"version": VERSION, "python": platform.python_version(), "platform": platform.platform()}
    print(json.dumps(facts))
    return 0
