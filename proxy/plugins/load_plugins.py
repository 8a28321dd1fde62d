"""Load the plugins of a configuration: find the class, check its interface, and create it with its options.

The libraries that find entry points are imported only if the configuration names plugins.
"""

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any, Final, cast

from config.load_config import Loaded
from config.problem import Path, Problem, did_you_mean
from config.sections.plugins_section import PluginSection
from proxy.plugins.api import API_VERSION, OptionError
from proxy.plugins.call_plugin import Raised, Returned, attempted

GROUP: Final = "dragoman.plugins"

_ROLES: Final = ("check_request", "check_answer", "deliver")

_SYNCHRONOUS: Final = ("check_request", "check_answer", "open_stream")

_ARGUMENTS: Final = {
    "check_request": ("request",),
    "check_answer": ("answer",),
    "open_stream": ("about", "choice"),
    "deliver": ("rows", "http"),
}
"""The arguments of each method."""

_MAX_MESSAGE: Final = 300
"""The maximum number of characters of a plugin's message."""


class PluginUsers:
    """The number of users of a plugin. A plugin may be a guard and a sink at once; it is closed when its last user has
    ended. Thread-safe, because guards end with the last request that passes them."""

    __slots__ = ("_count", "_counting")

    def __init__(self) -> None:
        self._count = 0
        self._counting = threading.Lock()

    def join(self) -> None:
        """Add one user."""
        with self._counting:
            self._count += 1

    def leave(self) -> bool:
        """Remove one user and return whether it was the last one."""
        with self._counting:
            self._count -= 1
            return self._count <= 0


@dataclass(frozen=True, slots=True, eq=False)
class LoadedPlugin:
    """A plugin of the configuration. `made` is the instance."""

    name: str
    made: Any = field(repr=False)
    deadline: float
    fails_open: bool
    users: PluginUsers = field(default_factory=PluginUsers, repr=False)

    @property
    def slow(self) -> bool:
        """Whether the plugin is called in threads."""
        return getattr(self.made, "slow", False) is True

    def has(self, method: str) -> bool:
        """Return whether the plugin has a method of the interface."""
        return callable(getattr(self.made, method, None))

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the plugin, as words for the operator."""
        words = {"check_request": "request guard", "check_answer": "answer guard", "deliver": "usage sink"}
        return tuple(word for method, word in words.items() if self.has(method))


Plugins = Mapping[str, LoadedPlugin]
"""The plugins by name, in the order of the configuration."""

NO_PLUGINS: Final[Plugins] = {}


def load_plugins(loaded: Loaded) -> tuple[Plugins, tuple[Problem, ...]]:
    """Return the plugins of a configuration that could be loaded, and the problems of the others and of the teams that
    use them."""
    if not loaded.config.plugins:
        return NO_PLUGINS, ()
    found: dict[str, LoadedPlugin] = {}
    problems: list[Problem] = []
    with redirect_stdout(sys.stderr):  # a plugin's own output must not mix with a command's output
        for name, section in loaded.config.plugins.items():
            made = _create(loaded, name, section)
            if isinstance(made, Problem):
                problems.append(made)
            else:
                found[name] = LoadedPlugin(name, made, section.deadline, section.fail == "open")
    problems.extend(_sinks_of_teams(loaded, found))
    return found, tuple(problems)


def guards_of(loaded: Loaded, plugins: Plugins, team: str) -> tuple[LoadedPlugin, ...]:
    """Return the guards of a team's requests and responses, in order: the team's own list, else all guards of the
    configuration."""
    section = loaded.config.teams.get(team)
    names = plugins if section is None or section.plugins is None else section.plugins
    found = (plugins[name] for name in names if name in plugins)
    return tuple(each for each in found if each.has("check_request") or each.has("check_answer"))


def passed_plugins(loaded: Loaded, plugins: Plugins, team: str) -> tuple[str, ...]:
    """Return, as words, the plugins that a request of a team passes, in order: its guards, then the sinks."""
    with redirect_stdout(sys.stderr):  # a plugin's attributes may be computed by code
        guards = guards_of(loaded, plugins, team)
        sinks = [each for each in plugins.values() if each.has("deliver") and each not in guards]
        return tuple(f"{each.name} ({', '.join(each.roles)})" for each in (*guards, *sinks))


def _sinks_of_teams(loaded: Loaded, plugins: Plugins) -> Iterator[Problem]:
    for team, section in loaded.config.teams.items():
        for index, name in enumerate(section.plugins or ()):
            if name in plugins and plugins[name].roles == ("usage sink",):
                path: Path = ("teams", team, "plugins", index)
                message = "this plugin is a usage sink, which gets the requests of all teams; list guards only"
                yield Problem.at(loaded.locate(path), path, message)


def _create(loaded: Loaded, name: str, section: PluginSection) -> object | Problem:
    """Return the instance, or the problem that prevents it."""
    path: Path = ("plugins", name)

    def problem(message: str, *below: str | int) -> Problem:
        place = (*path, *below)
        return Problem.at(loaded.locate(place), place, message[:_MAX_MESSAGE])

    found = _find(section.use)
    fault = found if isinstance(found, str) else _fault_of_class(found)
    if fault is not None:
        return problem(fault, "use")
    made: Returned[object] | Raised = attempted(partial(cast("Callable[[object], object]", found), section.options))
    if not isinstance(made, Raised):
        unfit = _unfit_method(made.value)
        return made.value if unfit is None else problem(unfit, "use")
    if isinstance(made.error, OptionError):
        message = _unquoted(str(made.error), loaded, (*path, "options"), section.options)
        return problem(message or "is refused by the plugin", "options", *made.error.path)
    return problem(f"the plugin cannot be made: {made}", "options")


def _fault_of_class(found: object) -> str | None:
    """Return the reason why an object is not a plugin of this version; `None` if it is one."""
    if not isinstance(found, type):
        return "names an object that is not a class"
    version = getattr(found, "api_version", None)
    if version != API_VERSION:
        said = "has no api_version" if version is None else f"is of api_version {version!s:.20}"
        return f"{said}; this gateway has version {API_VERSION} of the plugin interface"
    if not any(callable(getattr(found, method, None)) for method in _ROLES):
        return f"has none of the methods of a plugin: {', '.join(_ROLES)}"
    for method in _SYNCHRONOUS:
        if inspect.iscoroutinefunction(getattr(found, method, None)):
            return f"its {method} is a coroutine (async def), which is never awaited: write a plain def"
    if not _takes(found, ("options",)):
        return "its __init__ does not take the options alone: __init__(self, options)"
    return None


def _unfit_method(made: object) -> str | None:
    """Return the method of a plugin that cannot be called with its arguments; `None` if every method can be called."""
    for method, arguments in _ARGUMENTS.items():
        called = getattr(made, method, None)
        if callable(called) and not _takes(called, arguments):
            return f"its {method} does not accept its arguments: {method}(self, {', '.join(arguments)})"
    return None


def _takes(called: Callable[..., object], arguments: Sequence[str]) -> bool:
    """Return whether a callable accepts these arguments. Return `True` if Python cannot determine its signature."""
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _find(use: str) -> object | str:
    """Return the object that a `use` names, or the reason why there is none."""
    from importlib.metadata import EntryPoint, entry_points

    if ":" in use:
        point = EntryPoint(use, use, GROUP)
    else:
        every = entry_points(group=GROUP)
        if use not in every.names:
            meant = did_you_mean(use, every.names)
            return f"no entry point of the group {GROUP} has this name{meant}; a class is named as module:Class"
        point = every[use]
    loaded: Returned[object] | Raised = attempted(point.load)
    if not isinstance(loaded, Raised):
        return loaded.value
    error = loaded.error
    if isinstance(error, ModuleNotFoundError):
        return f"there is no module {error.name} where the gateway runs"
    if isinstance(error, AttributeError) and point.module:
        return f"the module {point.module} has no {point.attr}"
    if isinstance(error, SyntaxError) and error.filename is not None:
        loaded = Raised(error, f" at {PurePath(error.filename).name}:{error.lineno}")
    return f"the module cannot be imported: {loaded}"


def _unquoted(message: str, loaded: Loaded, path: Path, options: object) -> str:
    """Return a plugin's message without the values that came from references."""
    for each, value in _texts(options, path):
        if each in loaded.referenced and value:
            message = message.replace(value, "***")
    return message


def _texts(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _texts(each, (*path, index))
