"""F01 to F30: connections that do not stand, answers that do not come, answers that say no. Never a client's fault."""

from tests.faults.registry import fault
from tests.faults.rig import Rig
from tests.support.script import Fin, Rst
from tests.support.vendor import FakeVendor


async def gone(vendor: FakeVendor) -> None:
    """Nobody listens there any more."""
    assert vendor._server is not None
    vendor._server.close()
    await vendor._server.wait_closed()


@fault(1)
async def connect_refused(rig: Rig) -> None:
    await gone(rig.one)
    alone = await rig.ask("one/m")
    assert (alone.status, alone.code) == (502, "upstream_error")
    assert (await rig.ask("both")).headers["x-dragoman-deployment"] == "two/m/default"
    *_, line = await rig.logged()
    assert line["outcome"] == "ok"


@fault(8)
async def idle_connection_closed_as_it_is_used_again(rig: Rig) -> None:
    assert (await rig.ask()).status == 200
    rig.one.answer((Fin(),))
    assert (await rig.ask()).status == 200
    assert [request.connection for request in rig.one.requests] == [0, 0, 1]


@fault(9)
async def reset_after_the_request_was_read(rig: Rig) -> None:
    rig.one.answer((Rst(),), (Rst(),))
    alone = await rig.ask("one/m")
    assert (alone.status, alone.code) == (502, "upstream_error")
    assert (await rig.ask("both")).headers["x-dragoman-deployment"] == "two/m/default"
