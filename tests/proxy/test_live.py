"""The table in force."""

from proxy.live import Live
from tests.proxy.tables import snapshot


def test_a_reader_keeps_the_table_it_read_while_later_ones_get_the_next() -> None:
    old, new = (snapshot(f"vendors: {{mock: {{}}}}\nmodels: {{mock/{name}: {{}}}}") for name in ("old", "new"))
    live = Live(old, 1_795_000_000)
    read = live.snapshot
    live.swap(new)
    assert list(read.models) == ["mock/old"]
    assert list(live.snapshot.models) == ["mock/new"]
    assert live.since == 1_795_000_000
