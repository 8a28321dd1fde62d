"""The promises of affinity: as many cached tokens as with one deployment, bounded load, and few moves after a loss.

By counts alone: conversations in front of deployments with caches, planned as a gateway plans them, in virtual time.
"""

import bisect
import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from proxy.routing.resolve_model import plan_for
from proxy.routing.snapshot import ANYONE, Snapshot
from tests.proxy.kit.conversations import Busy, PrefixCache, deployments, homes, planned, session_load
from tests.proxy.kit.deployment_loads import Told
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.looped import looped
from tests.support.nightly import some

FOUR = ("eu", "us", "asia", "home")
CONVERSATIONS, TURNS = 200, 10
BLOCKS_OF_A_TURN, SHARED_BLOCKS = 5, 12
"""Blocks of 128 tokens: each turn adds 640, after 1,536 tokens of instructions and tools that all conversations
share."""


def turns(rng: random.Random) -> Iterator[tuple[str, int]]:
    """Yield the conversation and the prompt's blocks of each request: 40 conversations at a time, in any order."""
    waiting = [f"conversation {number}" for number in range(CONVERSATIONS)]
    running = dict.fromkeys((waiting.pop() for _ in range(40)), 0)
    while running:
        name = rng.choice(list(running))
        running[name] += 1
        yield name, SHARED_BLOCKS + BLOCKS_OF_A_TURN * running[name]
        if running[name] == TURNS:
            del running[name]
            if waiting:
                running[waiting.pop()] = 0


def cached_blocks(table: Snapshot, blocks: int) -> int:
    """Return the blocks that are found in the caches of a configuration's deployments, each of which holds `blocks`
    blocks."""
    rng = random.Random(4)
    load = Told(rng.random)
    caches = {target.name: PrefixCache(blocks) for target in table.targets()}
    found = 0
    for conversation, length in turns(rng):
        own = session_load(conversation, load)
        made = plan_for(table, ANYONE, "v/m", "openai", own)
        found += caches[made.targets[0].name].read(conversation, length, SHARED_BLOCKS)
    return found


@looped("policy", some(["weighted", "round_robin", "least_busy"], 3))
def test_four_deployments_cache_as_much_as_one_with_all_their_memory(policy: str) -> None:
    one = cached_blocks(snapshot(deployments(("only",), policy)), 4 * 1_000)
    table = snapshot(deployments(FOUR, policy))
    by_conversation = cached_blocks(table, 1_000) / one
    by_chance = cached_blocks(snapshot(deployments(FOUR, policy, more="affinity: off, ")), 1_000) / one
    assert by_conversation >= 0.95
    assert by_chance <= 0.80


@dataclass(slots=True)
class Traffic:
    """Requests of many sessions, of which few are most of the traffic, and how long each takes."""

    rng: random.Random
    sessions: Sequence[str]
    rate: float
    shares: Sequence[float] = field(init=False)

    def __post_init__(self) -> None:
        self.shares = list(accumulate(1 / (place + 1) ** 1.3 for place in range(len(self.sessions))))

    def session(self) -> str:
        """Choose a session at random by Zipf's law with an exponent of 1.3."""
        return self.sessions[bisect.bisect(self.shares, self.rng.random() * self.shares[-1])]


def spread(table: Snapshot, seed: int, requests: int = 6_000) -> tuple[list[float], float]:
    """Return the greatest ratio of requests in flight to the mean at each moment, and the share of requests at their
    home deployment."""
    rng = random.Random(seed)
    traffic = Traffic(rng, [f"{seed} {number}" for number in range(2_000)], 128.0)
    busy, ends, now, home = Busy(), list[tuple[float, int]](), 0.0, 0
    targets = list(table.targets())
    positions = {target.name: place for place, target in enumerate(targets)}
    ratios: list[float] = []
    for number in range(requests):
        now += rng.expovariate(traffic.rate)
        while ends and ends[0][0] <= now:
            busy.end(targets[heapq.heappop(ends)[1]])
        made, placed = planned(table, traffic.session(), busy.load())
        first = made.targets[0]
        home += placed.outcome(first.label) == "kept"
        busy.begin(first)
        heapq.heappush(ends, (now + rng.lognormvariate(-0.32, 0.8), positions[first.name]))
        if number >= 1_000:
            counts = [busy.counts.get(target.name, 0) for target in targets]
            ratios.append(max(counts) * len(counts) / sum(counts))
    return sorted(ratios), home / requests


def test_few_hot_sessions_overload_no_deployment_and_most_requests_are_at_home() -> None:
    table = snapshot(deployments(FOUR))
    runs = [spread(table, seed) for seed in range(6)]
    for ratios, _ in runs:
        assert ratios[int(0.99 * len(ratios))] <= 1.65
    assert sum(home for _, home in runs) / len(runs) >= 0.88


def test_one_of_four_that_is_lost_moves_a_quarter_of_the_sessions_and_of_the_others_none() -> None:
    sessions = [f"session {number}" for number in range(4_000)]
    before = homes(snapshot(deployments(FOUR)), sessions)
    after = homes(snapshot(deployments(FOUR).replace("us: {", "us: {out_of_service: true, ")), sessions)
    moved = {session for session in sessions if before[session] != after[session]}
    assert moved == {session for session in sessions if before[session] == "us"}
    assert len(moved) <= 0.26 * len(sessions)
    gone = homes(snapshot(deployments([name for name in FOUR if name != "us"])), sessions)
    assert gone == after


def test_shares_of_sessions_follow_weights() -> None:
    table = snapshot(deployments(("big", "small"), weights=(9, 1)))
    found = homes(table, [f"key {number}" for number in range(10_000)])
    assert abs(list(found.values()).count("big") - 9_000) <= 3 * (10_000 * 0.9 * 0.1) ** 0.5


def test_two_teams_with_the_same_sessions_are_placed_independently() -> None:
    teams = [f'{name}: {{keys: ["{digest_of(name)}"], models: ["*"]}}' for name in ("a", "b")]
    table = snapshot(f"{deployments(FOUR)}teams: {{{', '.join(teams)}}}\n")
    sessions = [f"session {number}" for number in range(4_000)]
    found = [homes(table, sessions, team) for team in (table.teams["a"], table.teams["b"], ANYONE)]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        alike = sum(found[first][session] == found[second][session] for session in sessions)
        assert abs(alike - 1_000) <= 5 * (4_000 * 0.25 * 0.75) ** 0.5
