"""Check the plugins that teams name. Whether a plugin can be loaded is checked by the code that loads it."""

from collections.abc import Iterator

from config.checks.check_between_sections import CheckContext, keys_below
from config.problem import Path, Problem


def check_plugins(context: CheckContext) -> tuple[Problem, ...]:
    """Return a problem for each name in a team's `plugins` that is no plugin or occurs twice."""
    return tuple(_named_by_teams(context))


def _named_by_teams(context: CheckContext) -> Iterator[Problem]:
    known = keys_below(context.root, ("plugins",))
    for team, section in context.config.teams.items():
        names = section.plugins or ()
        for index, name in enumerate(names):
            path: Path = ("teams", team, "plugins", index)
            if name not in known:
                yield context.at_value(path, context.no_such("plugin", name, path, known))
            elif name in names[:index]:
                yield context.at_value(path, "this plugin is listed twice")
