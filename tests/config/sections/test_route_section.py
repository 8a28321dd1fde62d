"""The short forms of routes and their targets."""

from tests.config.tables import load


def test_a_name_alone_is_a_route_and_a_target() -> None:
    config = load(
        """\
        version: 1
        vendors: {v: {}}
        models: {v/a: {}, v/b: {}}
        routes:
          one: v/a
          two: {policy: weighted, targets: [v/a, {target: v/b, weight: 3}]}
        """
    ).config
    assert [target.target for target in config.routes["one"].targets] == ["v/a"]
    assert [(target.target, target.weight) for target in config.routes["two"].targets] == [("v/a", 1), ("v/b", 3)]
