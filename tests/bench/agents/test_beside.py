"""The figures of light requests beside large ones."""

from tests.bench.agents.beside import Beside
from tests.bench.agents.bodies import LARGE
from tests.bench.agents.measure import Cost
from tests.bench.agents.report import agents_section, beside_row, cost_row
from tests.bench.agents.rows import Row

ROW = Row("chat", "openai", LARGE, spaced=True)


def test_a_wait_is_what_a_light_request_takes_beyond_its_time_alone() -> None:
    found = Beside(ROW, [0.001] * 100, [0.002] * 90 + [0.005] * 10, 3.5)
    assert round(found.wait or 0, 3) == 4
    assert beside_row(found)[1:] == ["4.0", "10", "5", "aim met", "3.5", "4", "3", "must met"]


def test_without_times_there_is_no_wait() -> None:
    assert Beside(ROW).wait is None
    assert "no result: HTTP/1.1 503" in beside_row(Beside(ROW, failure="HTTP/1.1 503"))[4]
    assert "no result: late" in cost_row(Cost(ROW, 9, 0.1, failure="late"))[-1]


def test_the_section_has_a_table_for_each_program() -> None:
    text = "\n".join(agents_section({"gateway": [Cost(ROW, 9, 0.1, [0.5])]}, [Beside(ROW)]))
    assert "### gateway" in text
    assert "| must met |" in text
    assert "not measured" in text
