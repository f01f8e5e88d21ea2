# amaranth: UnusedElaboratable=no

"""Queues, semaphores, watchdog and errors together: programs, pace, and every cause of error."""

import pytest

from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.spec.isa import Cause, Engine, Rule, UpdateOp
from tests.hdl.queue.queues import Item
from tests.hdl.queue.system import Player, System
from tests.hdl.simulation import simulate

SEED = 1981

TENSOR, VECTOR, DMA, COLLECTIVE = range(4)
ENGINES = (Engine.TENSOR, Engine.VECTOR, Engine.DMA, Engine.COLLECTIVE)

ADD, SUBTRACT, SET, NONE = UpdateOp.ADD, UpdateOp.SUBTRACT, UpdateOp.SET, UpdateOp.NONE


def item(queue, *, waits=(), updates=(), body=2, **others):
    """Return a record for a queue; in the tensor's it is a MultiplyMoving, which finishes in lane 0."""
    return Item(int(ENGINES[queue]), body, tuple(waits), tuple(updates), **others)


def play(rng, programs, cycles, *, pace=1.0, prepare=None, each=None):
    """Play programs for so many cycles, or until `each` returns true; return the player."""
    system = System(collective=len(programs) > COLLECTIVE)
    players = []

    async def bench(ctx):
        player = Player(rng, ctx, system, programs, pace)
        players.append(player)
        if prepare:
            prepare(player)
        await player.sweep()
        for _ in range(cycles):
            if each and each(player):
                break
            await player.cycle()
        player.left = await player.values(range(8))

    simulate(system, bench)
    return players[0]


def error_of(player):
    """Return queue, cause, address, detail of the error."""
    _, error = player.error
    return error.queue, error.cause, error.address, error.detail


def ordered_program(rng, count):
    """Return programs in which records wait for adds of earlier ones, so that they end; and what is left of semaphores
    0 to 7. Semaphores 0 to 5 only grow, and are waited for; 6 and 7 are set and subtracted in one queue each."""
    programs, values = ([], [], []), [0] * 8
    for _ in range(count):
        queue = int(rng.integers(3))
        waits = []
        for _ in range(rng.integers(3)):
            semaphore = int(rng.integers(6))
            waits.append((semaphore, int(rng.integers(values[semaphore] + 1))))
        updates = []
        for _ in range(rng.integers(3)):
            semaphore, amount = int(rng.integers(6)), int(rng.integers(1, 4))
            updates.append((ADD, semaphore, amount))
            values[semaphore] += amount
        if len(updates) == 1 and queue != TENSOR:
            semaphore = 5 + queue
            low = values[semaphore]
            op, amount = (SUBTRACT, 1 + low // 2) if low else (SET, 9)
            values[semaphore] = low - amount if op == SUBTRACT else amount
            updates.append((op, semaphore, amount))
        programs[queue].append(item(queue, waits=waits, updates=updates, body=int(rng.integers(1, 3))))
    return programs, values


@pytest.mark.parametrize("pace", [1.0, 0.4])
def test_programs_end_in_order_with_the_right_semaphores(pace, rng):
    programs, values = ordered_program(rng, 150)
    total = sum(map(len, programs))
    player = play(rng, programs, 4000, pace=pace, each=lambda player: player.time > 20 and player.quiet())
    assert player.error is None and len(player.finished) == total and player.left == values
    assert [[i for _, q, i in player.issued if q == queue] for queue in range(3)] == list(programs)
    done, events = [0] * 8, [(t, 0, i) for t, _, i in player.finished] + [(t, 1, i) for t, _, i in player.issued]
    for _, is_issue, record in sorted(events, key=lambda event: event[:2]):
        if is_issue:
            assert all(done[s] >= v for s, v in record.waits if s < 6), "issued before what it waits for had finished"
        else:
            for op, semaphore, amount in record.updates:
                done[semaphore] += amount if op == ADD else 0


def test_pace_of_waits_and_of_records_that_wait_for_nothing(rng):
    """From an update that is taken to the instruction: WAIT_LATENCY cycles; a completion takes one more."""
    programs = [[], [item(VECTOR, updates=[(ADD, 1, 1)])], [item(DMA, waits=[(1, 1)])]]
    programs[TENSOR] = [item(TENSOR, waits=[(1, 1)])] + [item(TENSOR) for _ in range(8)]
    player = play(rng, programs, 60)
    (finished,) = (t for t, q, _ in player.finished if q == VECTOR)
    taken = finished + 1
    starts = [t for t, q, _ in player.issued if q == TENSOR]
    assert [t for t, q, _ in player.issued if q == DMA] == [taken + Queue.WAIT_LATENCY]
    assert starts == [taken + Queue.WAIT_LATENCY + 2 * n for n in range(9)]


def run_to_error(rng, programs, **options):
    """Play until 30 cycles after the error; check that nothing was issued once it was known; return the player."""
    player = play(rng, programs, 3000, each=lambda p: p.error is not None and p.time > p.error[0] + 30, **options)
    assert player.error is not None
    late = [time for time, _, _ in player.issued if time > player.error[0] + 1]
    assert not late
    return player


@pytest.mark.parametrize("pace", [1.0, 0.3])
def test_a_record_for_another_engine(pace, rng):
    programs = [[], [item(VECTOR) for _ in range(20)], []]
    programs[VECTOR][7] = Item(int(Engine.DMA), 0, waits=((3, 1),))  # its waits do not matter
    player = run_to_error(rng, programs, pace=pace)
    assert error_of(player) == (VECTOR, Cause.ENGINE, programs[VECTOR][7].address, Engine.DMA)
    assert [i for _, _, i in player.finished] == programs[VECTOR][:7]
    assert player.finished[-1][0] < player.error[0]


def test_a_record_of_zeros(rng):
    player = run_to_error(rng, [[Item(0, 0)], [], []])
    assert error_of(player) == (TENSOR, Cause.ENGINE, player.programs[TENSOR][0].address, 0)


def test_a_record_that_cannot_be_fetched(rng):
    programs = [[], [], [item(DMA) for _ in range(9)]]
    programs[DMA][5].error = True
    player = run_to_error(rng, programs)
    assert error_of(player) == (DMA, Cause.FETCH, programs[DMA][5].address, 0)
    assert [i for _, _, i in player.issued] == programs[DMA][:5]


@pytest.mark.parametrize(("op", "value"), [(SUBTRACT, 8), (ADD, 65529)])
@pytest.mark.parametrize("lane", [0, 1])
def test_an_update_beyond_the_range(op, value, lane, rng):
    """It is left out; the one behind it, and those of records in flight, are done."""
    programs = [[item(TENSOR, body=2 - lane) for _ in range(6)], [item(VECTOR, updates=[(ADD, 2, 5)])], []]
    programs[TENSOR][0].updates = ((SET, 4, 7), (NONE, 0, 0))
    programs[TENSOR][3].updates = ((op, 4, value), (ADD, 1, 1))

    def prepare(player):
        player.finishes = lambda queue, item: queue == TENSOR or player.error is not None

    player = run_to_error(rng, programs, prepare=prepare)
    assert error_of(player) == (TENSOR, Cause.SEMAPHORE, programs[TENSOR][3].address, 4)
    assert player.left == [0, 1, 5, 0, 7, 0, 0, 0]


@pytest.mark.parametrize("bad", [0, 3, 21, 40])
@pytest.mark.parametrize("queue", [TENSOR, DMA])
def test_an_engine_error_names_the_record_by_its_number(queue, bad, rng):
    """The engine stops at an instruction early, and says so while those before it are still at work."""
    programs = [[], [], []]
    programs[queue] = [item(queue, body=1 + int(rng.integers(2)), updates=[(ADD, 0, 1)]) for _ in range(48)]

    def prepare(player):
        player.finishes = lambda queue, item: item in programs[queue][:bad] and rng.random() < 0.3

    def report(player):
        if len(player.issued) > bad:
            fault = {"valid": 1, "cause": int(Rule.RANGE), "number": bad, "detail": 77}
            player.ctx.set(player.system.queues[queue].engine_error, fault)
        return player.error is not None

    player = play(rng, programs, 1500, prepare=prepare, each=report)
    assert error_of(player) == (queue, Rule.RANGE, programs[queue][bad].address, 77)
    assert len(player.finished) == bad and player.left[0] == bad


def test_errors_of_a_queue_come_in_the_order_of_its_program(rng):
    """An update is refused while a broken record waits at the head, and the engine has refused one in between."""
    programs = [[], [item(VECTOR) for _ in range(6)], []]
    programs[VECTOR][1].updates = ((SUBTRACT, 0, 1),)
    programs[VECTOR][4].error = True

    def prepare(player):
        player.finishes = lambda queue, item: player.time > 60 and item in programs[VECTOR][:3]

    def report(player):
        if len(player.issued) == 4:
            fault = {"valid": 1, "cause": int(Rule.SHAPE), "number": 3, "detail": 0}
            player.ctx.set(player.system.queues[VECTOR].engine_error, fault)
        return player.time == 100

    player = play(rng, programs, 200, prepare=prepare, each=report)
    assert error_of(player) == (VECTOR, Cause.SEMAPHORE, programs[VECTOR][1].address, 0)
    assert player.error[0] > 60


def test_an_error_halts_the_other_queues(rng):
    """Records in flight finish and update; a doorbell is taken, and forgotten."""
    programs = [[item(TENSOR, updates=[(ADD, 1, 1)]) for _ in range(100)], [item(VECTOR), item(VECTOR)], []]
    programs[VECTOR][1].error = True

    rung = []

    def prepare(player):
        player.finishes = lambda queue, item: queue == VECTOR or player.error is not None

    def each(player):
        if player.error is None:
            return False
        if not rung:
            player.blocks[TENSOR].extend([(0, 65535)] * 9)
        rung.append(player.ctx.get(player.system.queues[TENSOR].rung))
        return len(rung) == 40

    player = play(rng, programs, 500, prepare=prepare, each=each)
    count = sum(q == TENSOR for _, q, _ in player.issued)
    assert 0 < count < 100 and player.left[1] == count == sum(q == TENSOR for _, q, _ in player.finished)
    assert not player.blocks[TENSOR] and set(rung) == {100}
    assert all(time <= player.error[0] + 1 for time, _, _ in player.issued)


LIMIT = 40


def watched(player):
    player.ctx.set(player.system.limit, LIMIT)


def test_the_watchdog_names_the_lowest_queue_that_waits(rng):
    programs = [
        [item(TENSOR, updates=[(SET, 3, 0x1234)]), item(TENSOR)],
        [item(VECTOR), item(VECTOR, waits=[(3, 0x1000), (3, 0x8765)])],
        [item(DMA, waits=[(3, 0xFFFF)])],
    ]

    def prepare(player):
        watched(player)
        player.finishes = lambda queue, item: item is not programs[TENSOR][1]  # this one is busy, but does not wait

    player = run_to_error(rng, programs, prepare=prepare)
    assert error_of(player) == (VECTOR, Cause.WATCHDOG, programs[VECTOR][1].address, 3 | 0x8765 << 8 | 0x34 << 24)


def test_a_first_wait_is_named_before_a_second(rng):
    player = run_to_error(rng, [[], [], [item(DMA, waits=[(5, 2), (6, 1)])]], prepare=watched)
    assert error_of(player) == (DMA, Cause.WATCHDOG, player.programs[DMA][0].address, 5 | 2 << 8)


@pytest.mark.parametrize("lane", [0, 1])
def test_the_watchdog_names_a_record_that_does_not_finish(lane, rng):
    programs = [[item(TENSOR, body=2 - lane) for _ in range(4)], [item(VECTOR)], []]

    def prepare(player):
        watched(player)
        player.finishes = lambda queue, item: item in programs[TENSOR][:2]

    player = run_to_error(rng, programs, prepare=prepare)
    assert error_of(player) == (TENSOR, Cause.STUCK, programs[TENSOR][2].address, 0)
    last = max(player.issued[-1][0], player.finished[-1][0])
    assert player.error[0] == last + LIMIT + 3  # the quiet cycles; watchdog and latch take one each


def test_the_watchdog_names_a_record_that_does_not_come(rng):
    programs = [[], [], [item(DMA) for _ in range(4)]]

    def prepare(player):
        watched(player)
        player.fetches = lambda queue, item: item is programs[DMA][0]

    player = run_to_error(rng, programs, prepare=prepare)
    assert error_of(player) == (DMA, Cause.STUCK, programs[DMA][1].address, 0)


@pytest.mark.parametrize("peer", [None, 5])
def test_the_watchdog_names_the_collective_that_waits_for_another_core(peer, rng):
    """Not the one behind it, which waits for a semaphore, nor the vector engine's record, which waits for that one;
    unless nobody is waited for."""
    programs = [[], [item(VECTOR, waits=[(6, 1)])], []]
    programs.append([item(COLLECTIVE), item(COLLECTIVE), item(COLLECTIVE, waits=[(5, 1)], updates=[(ADD, 6, 1)])])

    def prepare(player):
        watched(player)
        player.ctx.set(player.system.peer, {"valid": peer is not None, "core": peer or 0})
        player.finishes = lambda queue, item: item is programs[COLLECTIVE][0]

    player = run_to_error(rng, programs, prepare=prepare)
    assert player.ctx.get(player.system.queues[COLLECTIVE].waiting)
    if peer is None:
        assert error_of(player) == (VECTOR, Cause.WATCHDOG, programs[VECTOR][0].address, 6 | 1 << 8)
    else:
        assert error_of(player) == (COLLECTIVE, Cause.STUCK, programs[COLLECTIVE][1].address, 1 << 8 | peer)


def test_a_collective_that_fails_says_why(rng):
    """As every engine does; the detail of a disagreement has more than its lowest bits."""
    programs = [[], [], [], [item(COLLECTIVE) for _ in range(4)]]

    def prepare(player):
        player.finishes = lambda queue, item: item is programs[COLLECTIVE][0]

    def report(player):
        if len(player.finished) == 1:
            fault = {"valid": 1, "cause": int(Cause.DISAGREE), "number": 1, "detail": 3 << 8 | 2}
            player.ctx.set(player.system.queues[COLLECTIVE].engine_error, fault)
        return player.error is not None

    player = play(rng, programs, 200, prepare=prepare, each=report)
    assert error_of(player) == (COLLECTIVE, Cause.DISAGREE, programs[COLLECTIVE][1].address, 3 << 8 | 2)


def test_the_watchdog_is_silent_while_something_moves_or_nothing_is_to_be_done(rng):
    programs = [[], [item(VECTOR)], []]

    def prepare(player):
        watched(player)
        player.finishes = lambda queue, item: player.time > 10 * LIMIT

    def each(player):
        player.ctx.set(player.system.activity, player.time % LIMIT == 0)
        return False

    player = play(rng, programs, 20 * LIMIT, prepare=prepare, each=each)
    assert player.error is None and len(player.finished) == 1
