"""A program behaves the same in an EagerTask and in an asyncio task, whatever happens to it, and when."""

import asyncio

import uvloop
from hypothesis import given
from hypothesis import strategies as st

from tests.proxy.kit.task_programs import ACTIONS, Step, as_asyncio_task, as_eager_task, programs, traced
from tests.support.examples import examples

bursts_of_actions = st.lists(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=3), max_size=5)


@given(
    program=programs,
    bursts=bursts_of_actions,
    by_callback=st.booleans(),
)
@examples(1_000)
def test_programs_see_the_same_as_in_asyncio(program: list[Step], bursts: list[list[Step]], by_callback: bool) -> None:
    expected = traced(asyncio.new_event_loop, as_asyncio_task, program, bursts, by_callback)
    assert traced(asyncio.new_event_loop, as_eager_task, program, bursts, by_callback) == expected


@given(
    program=programs,
    bursts=bursts_of_actions,
    by_callback=st.booleans(),
)
@examples(200)
def test_programs_see_the_same_under_uvloop(program: list[Step], bursts: list[list[Step]], by_callback: bool) -> None:
    expected = traced(uvloop.new_event_loop, as_asyncio_task, program, bursts, by_callback)
    assert traced(uvloop.new_event_loop, as_eager_task, program, bursts, by_callback) == expected
