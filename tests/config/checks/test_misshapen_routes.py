"""The targets that are found in routes of the wrong type."""

from config.checks.misshapen_routes import written_names
from config.reading.yaml_tree import MapNode, parse
from tests.config.tables import BASE, complaints
from tests.support.looped import looped


@looped(
    ("route", "names"),
    [
        ("[a, b/c]", ["r.0 a", "r.1 b/c"]),
        ("{targets: a}", ["r.targets a"]),
        ("{target: [a, {target: b, weight: 2}]}", ["r.target.0 a", "r.target.1.target b"]),
        ("{targets: {target: a}}", ["r.targets.target a"]),
        ("[1, true, null, '', 'a b', ${X}, '${X:-a}', {weight: a}]", []),
        ("{policy: weighted, fallbacks: {context_window: [a]}}", []),
    ],
)
def test_the_names_of_a_misshapen_route_are_found_with_their_paths(route: str, names: list[str]) -> None:
    quoted = route.replace("${X}", "'${X}'")
    root = parse(f"r: {quoted}\n", "t").root
    assert isinstance(root, MapNode)
    found = written_names(root.entries["r"].node, ("r",))
    assert [f"{'.'.join(map(str, path))} {name}" for path, name in found] == names


def test_a_wrong_name_in_a_misshapen_route_is_reported_in_the_same_run() -> None:
    text = f"""{BASE}routes:
  fast:
    - openai/gtp-4o
    - openai/gpt-4o-mini
    - slow
  slow: {{targets: openai/gpt4o}}
  other: {{target: local/any}}
teams:
  t:
    keys: ["sha256:{"a" * 64}"]
    routes: {{own: [fast, azure/gpt-4o/ue, mine], mine: local/any}}
"""
    assert complaints(text) == [
        "10:5 routes.fast: expected a name or a mapping, found a list; write fast: {targets: [openai/gtp-4o, "
        "openai/gpt-4o-mini, slow]}",
        "10:7 routes.fast.0: no model or route named openai/gtp-4o; did you mean openai/gpt-4o or openai/gpt-4o-mini?",
        "13:19 routes.slow.targets: expected a list, found text; put it in [ ]",
        "14:3 routes.other.targets: required key is missing",
        "14:11 routes.other.target: unknown key; did you mean targets?",
        "18:19 teams.t.routes.own: expected a name or a mapping, found a list; write own: {targets: [fast, "
        "azure/gpt-4o/ue, mine]}",
        "18:26 teams.t.routes.own.1: no model or route named azure/gpt-4o/ue; did you mean azure/gpt-4o/us "
        "or azure/gpt-4o/eu or azure/gpt-4o?",
    ]
