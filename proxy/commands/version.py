"""`dragoman version`: which build this is, and on what it runs. Never imports the gateway."""

import json
import platform

from proxy.version import VERSION


def version_text() -> int:
    """Print a line for people."""
    print(f"dragoman {VERSION}")
    return 0


def version_json() -> int:
    """Print a JSON object: the version, and the Python and the system it runs on."""
    facts = {"version": VERSION, "python": platform.python_version(), "platform": platform.platform()}
    print(json.dumps(facts))
    return 0
