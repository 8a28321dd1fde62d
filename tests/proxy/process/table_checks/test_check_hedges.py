"""A `hedge` that no request can use is reported at its place in the configuration."""

from config.load_config import load_text
from proxy.process.table_checks.check_hedges import idle_hedges
from proxy.routing.snapshot import build_snapshot
from tests.proxy.kit.tables import digest_of
from tests.support.looped import looped

TABLE = """\
version: 1
{defaults}
vendors:
  v: {{profile: openai, api_key: k{vendor}}}
  e: {{profile: voyage, api_key: k}}
models:
  v/two: {{deployments: {{a: {{{a}}}, b: {{{b}}}}}{two}}}
  v/one: {{}}
  e/two: {{deployments: {{a: {{}}, b: {{}}}}{embeds}}}
routes:
  both: {{targets: [v/one, v/two]{both}}}
  vectors: {{targets: [e/two]{vectors}}}
teams:
  t: {{keys: ["{key}"], models: ["*"], routes: {{mine: {{targets: [v/one, v/two]{mine}}}}}}}
"""
ON = ", hedge: auto"
ONCE = "retries: {attempts: 1}"
STRICT = "retries: {safety: strict}"
NO_SECOND = "has no effect: retries.safety or retries.attempts permits none"
NO_TEXT = "has no effect: its deployments generate no text"


@looped(
    ("written", "expected"),
    [
        ({"two": ON, "both": ON, "mine": ON}, []),
        ({"two": f"{ON}, {ONCE}"}, [f"models.v/two.hedge: {NO_SECOND}"]),
        ({"two": ON, "a": STRICT, "b": ONCE}, [f"models.v/two.hedge: {NO_SECOND}"]),
        ({"two": ON, "a": STRICT}, []),
        ({"embeds": ON}, [f"models.e/two.hedge: {NO_TEXT}"]),
        ({"vectors": ON}, [f"routes.vectors.hedge: {NO_TEXT}"]),
        ({"vectors": ", hedge: off"}, []),
        ({"vendor": f", {STRICT}", "both": ON}, [f"routes.both.hedge: {NO_SECOND}"]),
        ({"vendor": f", {STRICT}", "mine": ON}, [f"teams.t.routes.mine.hedge: {NO_SECOND}"]),
        ({"vendor": f", {STRICT}{ON}"}, [f"vendors.v.hedge: {NO_SECOND}"]),
        ({"vendor": f", {STRICT}{ON}", "a": "retries: {safety: safe}"}, []),
        ({"defaults": f"defaults: {{hedge: auto, {ONCE}}}"}, [f"defaults.hedge: {NO_SECOND}"]),
        ({"defaults": "defaults: {hedge: auto}"}, []),
    ],
)
def test_a_hedge_that_no_request_can_use_is_a_warning(written: dict[str, str], expected: list[str]) -> None:
    names = ("defaults", "vendor", "a", "b", "two", "embeds", "both", "vectors", "mine")
    loaded = load_text(TABLE.format(**{**dict.fromkeys(names, ""), **written}, key=digest_of("t")), "t", {})
    found = idle_hedges(loaded, build_snapshot(loaded))
    assert [f"{each.path}: {each.message}" for each in found] == expected
    assert all(each.line and each.column for each in found)
