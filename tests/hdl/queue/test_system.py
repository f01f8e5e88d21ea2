import pytest

from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.spec.isa import Cause, Engine, Rule, UpdateOp
from tests.hdl.queue.queues import Item
from tests.hdl.queue.system import ENGINES, Player, System
from tests.hdl.simulation import drive, simulate, slow

SEED = 1981
TENSOR, VECTOR, DMA, COLLECTIVE = range(len(ENGINES))
ADD, SUBTRACT, SET, NONE = UpdateOp.ADD, UpdateOp.SUBTRACT, UpdateOp.SET, UpdateOp.NONE


def nop(*, waits=(), updates=(), **others):
    return Item(int(Engine.QUEUE), 0, tuple(waits), tuple(updates), **others)


def item(queue, *, waits=(), updates=(), body=2, **others):
    return Item(int(ENGINES[queue]), body, tuple(waits), tuple(updates), **others)


def play(rng, programs, cycles, *, until=lambda player: False, fault=None, ports=None, records=4, **options):
    system = System(collective=COLLECTIVE in programs, records=records)

    async def bench(ctx):
        player = Player(rng, ctx, system, programs, **options)
        drive(ctx, system, **ports or {})
        await player.sweep()
        for _ in range(cycles):
            if fault and sum(not i.is_nop for _, _, i in player.issued) > fault[1]:
                report = dict(zip(("number", "cause", "detail"), map(int, fault[1:]), strict=True))
                ctx.set(system.queues[fault[0]].engine_error, {"valid": 1, **report})
            if until(player):
                break
            await player.cycle()
        player.left = await player.values(range(8))
        return player

    return simulate(system, bench)


def play_to_error(rng, programs, queue, place, cause, detail=0, **options):
    player = play(rng, programs, 3000, until=lambda p: p.error is not None and p.time > p.error[0] + 30, **options)
    assert player.error is not None
    time, error = player.error
    found = error.queue, error.cause, error.address, error.detail
    assert found == (queue, cause, programs[queue][place].address, detail)
    assert all(issued <= time + 1 for issued, _, _ in player.issued)
    return player


def only(records):
    return lambda player, queue, item: item in records


def only_once_failed(free):
    return lambda player, queue, item: queue == free or player.error is not None


def ordered_program(rng, count):
    """Return programs that end, and the final values of semaphores 0 to 7.

    Records wait only for updates of earlier records, of semaphores 0 to 5, which only grow; 6 and 7 are set and
    decremented, each by one queue.
    """
    programs, values = {queue: [] for queue in range(3)}, [0] * 8
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
        if len(updates) < 2 and rng.random() < 0.2:
            programs[queue].append(nop(waits=waits, updates=updates))
            continue
        programs[queue].append(item(queue, waits=waits, updates=updates, body=int(rng.integers(1, 3))))
    return programs, values


@pytest.mark.parametrize(("pace", "records"), [(1.0, 4), (0.4, 4), (0.4, 1)])
def test_programs_end_in_order_with_the_right_semaphores(pace, records, rng):
    programs, values = ordered_program(rng, 150)
    player = play(rng, programs, 4000, pace=pace, records=records, until=lambda p: p.time > 20 and p.quiet())
    assert player.error is None and len(player.finished) == 150 and player.left == values
    assert {queue: [i for _, q, i in player.issued if q == queue] for queue in range(3)} == programs
    done, events = [0] * 8, [(t, 0, i) for t, _, i in player.finished] + [(t, 1, i) for t, _, i in player.issued]
    for _, is_issue, record in sorted(events, key=lambda event: event[:2]):
        if is_issue:
            assert all(done[s] >= v for s, v in record.waits if s < 6), "issued before its waits are satisfied"
        else:
            for op, semaphore, amount in record.updates:
                done[semaphore] += amount if op == ADD else 0


def test_latency_of_waits_and_throughput_without(rng):
    programs = {
        TENSOR: [item(TENSOR, waits=[(1, 1)])] + [item(TENSOR) for _ in range(8)],
        VECTOR: [item(VECTOR, updates=[(ADD, 1, 1)])],
        DMA: [item(DMA, waits=[(1, 1)])],
    }
    player = play(rng, programs, 60)
    (finished,) = (t for t, q, _ in player.finished if q == VECTOR)
    start = finished + 1 + Queue.WAIT_LATENCY
    assert [t for t, q, _ in player.issued if q == DMA] == [start]
    assert [t for t, q, _ in player.issued if q == TENSOR] == [start + 2 * n for n in range(9)]


def test_a_nop_passes_records_in_flight_and_blocks_later_ones(rng):
    # The NOP updates, once per cycle, although the record before it never finishes; then the next record is issued.
    programs = {
        DMA: [item(DMA), nop(updates=[(ADD, 1, 1), (SET, 2, 7)]), item(DMA), nop(waits=[(3, 1), (2, 7)]), item(DMA)],
        VECTOR: [item(VECTOR, waits=[(1, 1), (2, 7)], updates=[(ADD, 3, 1)])],
    }
    player = play(rng, programs, 60, finishes=lambda player, queue, item: queue == VECTOR)
    times = [time for time, queue, _ in player.issued if queue == DMA]
    ((vector, _, _),) = (event for event in player.issued if event[1] == VECTOR)
    ((finished, _, _),) = (event for event in player.finished if event[1] == VECTOR)
    joined = finished + 1 + Queue.WAIT_LATENCY
    assert times == [times[0], times[0] + 3, times[0] + 5, joined, joined + 2]
    assert vector == times[1] + Queue.WAIT_LATENCY and player.left[:4] == [0, 1, 7, 1]


def test_engines_do_not_count_nops(rng):
    # The error of an engine names a record by its number among the records that the engine received.
    program = [item(DMA, updates=[(ADD, 0, 1)]) for _ in range(40)]
    mixed = [record for one in program for record in (nop(), one, nop(updates=[(ADD, 1, 1)]))]
    fault, finishes = (DMA, 21, Rule.RANGE, 77), only(program[:21])
    player = play_to_error(rng, {DMA: mixed}, DMA, 3 * 21 + 1, Rule.RANGE, 77, finishes=finishes, fault=fault)
    assert player.left[0] == 21 and player.left[1] >= 21


@pytest.mark.parametrize("queue", [TENSOR, DMA])
def test_an_update_of_a_nop_beyond_the_range(queue, rng):
    program = [item(queue), nop(updates=[(SUBTRACT, 4, 1), (ADD, 1, 1)]), item(queue)]
    player = play_to_error(rng, {queue: program}, queue, 1, Cause.SEMAPHORE, 4)
    assert player.left[:5] == [0, 1, 0, 0, 0]


@pytest.mark.parametrize("pace", [1.0, 0.3])
def test_a_record_for_another_engine(pace, rng):
    program = [item(VECTOR) for _ in range(20)]
    program[7] = Item(int(Engine.DMA), 0, waits=((3, 1),))  # its waits are ignored
    player = play_to_error(rng, {VECTOR: program}, VECTOR, 7, Cause.ENGINE, Engine.DMA, pace=pace)
    assert [i for _, _, i in player.finished] == program[:7]
    assert player.finished[-1][0] < player.error[0]


def test_a_record_that_cannot_be_fetched(rng):
    program = [item(DMA, error=n == 5) for n in range(9)]
    player = play_to_error(rng, {DMA: program}, DMA, 5, Cause.FETCH)
    assert [i for _, _, i in player.issued] == program[:5]


@pytest.mark.parametrize(("op", "value"), [(SUBTRACT, 8), (ADD, 65529)])
@pytest.mark.parametrize("lane", [*slow(0), 1])
def test_an_update_beyond_the_range(op, value, lane, rng):
    programs = {TENSOR: [item(TENSOR, body=2 - lane) for _ in range(6)], VECTOR: [item(VECTOR, updates=[(ADD, 2, 5)])]}
    programs[TENSOR][0].updates = ((SET, 4, 7), (NONE, 0, 0))
    programs[TENSOR][3].updates = ((op, 4, value), (ADD, 1, 1))
    player = play_to_error(rng, programs, TENSOR, 3, Cause.SEMAPHORE, 4, finishes=only_once_failed(free=TENSOR))
    assert player.left == [0, 1, 5, 0, 7, 0, 0, 0]


@pytest.mark.parametrize("bad", [0, *slow(3, 21), 40])
@pytest.mark.parametrize("queue", [TENSOR, DMA])
def test_an_engine_error_names_the_record_by_its_number(queue, bad, rng):
    # The engine reports while earlier records are still in flight.
    program = [item(queue, body=1 + int(rng.integers(2)), updates=[(ADD, 0, 1)]) for _ in range(48)]
    options = {"finishes": lambda player, queue, item: item in program[:bad] and rng.random() < 0.3}
    options["fault"] = queue, bad, Rule.RANGE, 77
    player = play_to_error(rng, {queue: program}, queue, bad, Rule.RANGE, 77, **options)
    assert len(player.finished) == bad and player.left[0] == bad


def test_errors_of_a_queue_are_reported_in_program_order(rng):
    program = [item(VECTOR, error=n == 4, updates=[(SUBTRACT, 0, 1)] if n == 1 else ()) for n in range(6)]
    options = {"finishes": lambda player, queue, item: player.time > 60 and item in program[:3]}
    options["fault"] = VECTOR, 3, Rule.SHAPE, 0
    player = play_to_error(rng, {VECTOR: program}, VECTOR, 1, Cause.SEMAPHORE, **options)
    assert player.error[0] > 60


def test_an_error_halts_the_other_queues(rng):
    """Records in flight finish and update; a doorbell is accepted and ignored."""
    programs = {
        TENSOR: [item(TENSOR, updates=[(ADD, 1, 1)]) for _ in range(100)],
        VECTOR: [item(VECTOR), item(VECTOR, error=True)],
    }
    rung = []

    def until(player):
        if player.error is not None:
            if not rung:
                player.blocks[TENSOR].extend([(0, 65535)] * 9)
            rung.append(player.ctx.get(player.system.queues[TENSOR].rung))
        return len(rung) == 40

    player = play(rng, programs, 500, until=until, finishes=only_once_failed(free=VECTOR))
    count = sum(q == TENSOR for _, q, _ in player.issued)
    assert 0 < count < 100 and player.left[1] == count == sum(q == TENSOR for _, q, _ in player.finished)
    assert not player.blocks[TENSOR] and set(rung) == {100}
    assert all(time <= player.error[0] + 1 for time, _, _ in player.issued)


LIMIT = 40
WATCHED = {"limit": LIMIT}


def test_the_watchdog_names_the_lowest_queue_that_waits(rng):
    programs = {
        TENSOR: [item(TENSOR, updates=[(SET, 3, 0x1234)]), item(TENSOR)],
        VECTOR: [item(VECTOR), item(VECTOR, waits=[(3, 0x1000), (3, 0x8765)])],
        DMA: [item(DMA, waits=[(3, 0xFFFF)])],
    }

    # The second tensor record is in flight, and does not wait.
    finishes = only([programs[TENSOR][0], programs[VECTOR][0]])
    detail = 3 | 0x8765 << 8 | 0x34 << 24
    play_to_error(rng, programs, VECTOR, 1, Cause.WATCHDOG, detail, finishes=finishes, ports=WATCHED)


@pytest.mark.parametrize("lane", [0, 1])
def test_the_watchdog_names_a_record_that_does_not_finish(lane, rng):
    programs = {TENSOR: [item(TENSOR, body=2 - lane) for _ in range(4)], VECTOR: [item(VECTOR)]}
    finishes = only(programs[TENSOR][:2])
    player = play_to_error(rng, programs, TENSOR, 2, Cause.STUCK, finishes=finishes, ports=WATCHED)
    last = max(player.issued[-1][0], player.finished[-1][0])
    assert player.error[0] == last + LIMIT + 4  # limit, two cycles of the watchdog, one of the latch


@pytest.mark.parametrize("peer", [None, 5])
def test_the_watchdog_names_the_collective_that_waits_for_another_core(peer, rng):
    """The error names the vector record if the collective waits for no core."""
    last = item(COLLECTIVE, waits=[(5, 1)], updates=[(ADD, 6, 1)])
    programs = {VECTOR: [item(VECTOR, waits=[(6, 1)])], COLLECTIVE: [item(COLLECTIVE), item(COLLECTIVE), last]}
    wanted = (VECTOR, 0, Cause.WATCHDOG, 6 | 1 << 8) if peer is None else (COLLECTIVE, 1, Cause.STUCK, 1 << 8 | peer)
    ports = {**WATCHED, "peer": {"valid": peer is not None, "core": peer or 0}}
    player = play_to_error(rng, programs, *wanted, finishes=only(programs[COLLECTIVE][:1]), ports=ports)
    assert player.ctx.get(player.system.queues[COLLECTIVE].waiting)


def test_the_watchdog_is_silent_while_something_moves_or_nothing_is_to_be_done(rng):
    def until(player):
        player.ctx.set(player.system.activity, player.time % LIMIT == 0)
        return False

    late = {"finishes": lambda player, queue, item: player.time > 10 * LIMIT}
    player = play(rng, {VECTOR: [item(VECTOR)]}, 20 * LIMIT, until=until, ports=WATCHED, **late)
    assert player.error is None and len(player.finished) == 1
