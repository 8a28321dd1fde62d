"""The gateway's own version, read once from the installed distribution."""

from importlib.metadata import version

VERSION = version("dragoman")
USER_AGENT = f"dragoman/{VERSION}"
