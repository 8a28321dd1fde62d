"""Names that are left without a target are reported at the deployments that were taken out of service."""

from config.load_config import load_text
from proxy.process.table_checks.check_out_of_service import unserved_names
from proxy.routing.snapshot import build_snapshot
from tests.proxy.kit.tables import digest_of
from tests.support.looped import looped

TABLE = """\
version: 1
vendors:
  v: {{profile: openai, api_key: k{v}}}
  w: {{profile: openai, api_key: k}}
models:
  v/a: {{deployments: {{x: {{{x}}}, y: {{{y}}}}}}}
  v/b: {{{b}}}
  w/c: {{}}
routes:
  both: [v/a, w/c]
  only: [v/b]
teams:
  t: {{keys: ["{key}"], models: ["*"], routes: {{mine: v/a/x}}}}
"""
OUT = "out_of_service: true"


@looped(
    ("written", "expected"),
    [
        ({}, []),
        ({"x": OUT}, ["6:43 models.v/a.deployments.x.out_of_service: requests for mine of team t are refused"]),
        ({"b": OUT}, ["7:25 models.v/b.out_of_service: requests for only, v/b are refused"]),
        ({"v": f", {OUT}"}, ["3:52 vendors.v.out_of_service: requests for only, v/a, v/b, mine of team t are refused"]),
        ({"v": f", {OUT}", "b": "out_of_service: false", "y": "out_of_service: false"}, ["mine of team t are refused"]),
    ],
)
def test_a_name_without_a_deployment_in_service_is_a_warning(written: dict[str, str], expected: list[str]) -> None:
    text = TABLE.format(**{**dict.fromkeys("vxyb", ""), **written}, key=digest_of("t"))
    text = text.replace("both: [v/a, w/c]", "both: {targets: [v/a, w/c]}").replace("only: [v/b]", "only: v/b")
    loaded = load_text(text, "t", {})
    found = [
        f"{each.line}:{each.column} {each.path}: {each.message}"
        for each in unserved_names(loaded, build_snapshot(loaded))
    ]
    assert len(found) == len(expected)
    for problem, start in zip(found, expected, strict=True):
        assert start in problem, problem
