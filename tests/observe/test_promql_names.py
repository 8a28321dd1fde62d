"""The names that an expression contains."""

from tests.observe.promql_names import promql_names
from tests.support.looped import looped

EXPRESSIONS = {
    "up == 0": {"up": set()},
    'sum by (job, team) (rate(a_total{outcome="or{x}", code!~"4.."}[5m])) / scalar(job:b:ratio)': {
        "a_total": {"outcome", "code"},
        "job:b:ratio": set(),
    },
    "a and on (job) b unless c offset 5m": {"a": set(), "b": set(), "c": set()},
    "min_over_time(a[1h:1m]) * 1e3 > bool 0.5": {"a": set()},
    "histogram_quantile(0.95, sum by (le) (rate(a_bucket[5m])))": {"a_bucket": set()},
}


@looped(("text", "metrics"), EXPRESSIONS.items())
def test_metrics_are_found_with_the_labels_that_select_them(text: str, metrics: dict[str, set[str]]) -> None:
    assert promql_names(text).metrics == metrics


def test_labels_are_found_that_are_grouped_and_matched_by() -> None:
    assert promql_names("sum by (job, team) (a) / ignoring (team) group_left (x) b").grouped == {"job", "team", "x"}
