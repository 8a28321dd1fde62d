"""Warns of a payload log that cannot be written to its path: the folder does not exist, or the path is a folder.

It is a warning, because the folder may be created or mounted before the first entry. No message repeats the path, which
may come from a secret reference.
"""

import os

from config.load_config import Loaded
from config.problem import Path, Problem


def payload_log_warnings(loaded: Loaded) -> tuple[Problem, ...]:
    """Return a warning if entries of the payload log could not be written now."""
    place = loaded.payloads
    if place is None or place.file is None:
        return ()
    if os.path.isdir(place.file):
        message = "this is a folder: entries of the payload log are dropped"
    elif not os.path.isdir(place.file.parent):
        message = "its folder does not exist: until it does, entries of the payload log are dropped"
    else:
        return ()
    path: Path = ("server", "payload_log", "path")
    return (Problem.at(loaded.locate(path), path, message),)
