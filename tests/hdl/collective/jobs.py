from neuroncore_rtl.hdl.collective.job import CollectiveJobLayout
from neuroncore_rtl.spec.isa import collective as isa
from neuroncore_rtl.spec.isa.collective import Collective

__all__ = ["job_bits", "job_values", "operations"]
K, T = isa.CollectiveKind, isa.CollectiveType


def job_values(one: Collective) -> dict[str, int]:
    """Return the fields of the job that the checker makes of a legal collective, except `draw` and the announcement."""
    barrier, cores = one.kind == K.BARRIER, one.group.cores
    chunk = isa.GRANULE * one.chunk
    unit = chunk if one.kind in (K.ALL_REDUCE, K.BARRIER) else one.pitch
    same = ("kind", "op", "narrow", "stochastic", "rank", "root", "src", "dst")
    return {
        **{name: int(getattr(one, name)) for name in same},
        "dtype": one.dtype * (not barrier),
        "last_rank": len(cores) - 1,
        "count": 1 if barrier else one.count,
        "chunk": chunk,
        "stride": one.group.stride % 128,
        "core": one.core,
        "first_core": cores[0],
        "last_core": cores[-1],
        "root_core": cores[one.root],
        "unit": unit,
        "own": one.rank * unit,
        "top": (len(cores) - 1) * unit,
    }


def job_bits(one: Collective) -> int:
    return CollectiveJobLayout.const(job_values(one)).as_bits()


def operations(one: Collective, channel: int, rounds: int | None = None) -> dict[str, list[dict[str, int]]]:
    """Return the operations of each unit of a rank's channel, as defined in `spec.isa.collective`.

    They have only the fields that have an effect.
    """
    kind, n, r = one.kind, one.group.ranks, one.rank
    barrier, d = kind == K.BARRIER, 1 - 2 * channel
    dtype, count = (T.FP32, 1) if barrier else (one.dtype, one.count)
    bf16 = dtype == T.BF16
    wide_in = bf16 and not one.narrow
    size, chunk = isa.element_bytes(dtype), isa.GRANULE * one.chunk
    half = min(-(-count // (2 * isa.GRANULE)) * isa.GRANULE, count)
    start, end = ((0, half), (half, count))[channel]
    lists = {name: [] for name in ("loads", "receives", "send_loads", "sends")}
    greeted, cores = {}, one.group.cores
    succ, pred, root = cores[(r + d) % n], cores[(r - d) % n], cores[one.root]

    def is_new(way, peer):
        before, greeted[way] = greeted.get(way), peer
        return before != peer

    def load(loads, block, first, elements, **flags):
        common = {"dtype": dtype, "elements": elements, "address": one.src + block * one.pitch + first * size}
        lists[loads].append({"zero": barrier, "wide": False} | flags | common)

    def send(peer, elements, *, load=False, wide=False):
        peers = {"new_peer": is_new("to", peer), "peer": peer}
        lists["sends"].append({"load": load, "wide": wide, "dtype": dtype, "elements": elements} | peers)

    def give(peer, block, first, elements, *, wide=False, zero=barrier):
        load("send_loads", block, first, elements, wide=wide, zero=zero)
        send(peer, elements, load=True, wide=wide)

    def receive(peer, block, first, elements, **flags):
        names = ("load", "store", "forward", "final", "wide_in", "wide_out", "stochastic")
        op = dict.fromkeys(names, False) | flags | {"net": peer is not None, "zero": barrier, "op": one.op}
        op |= {"dtype": dtype, "elements": elements, "first_element": first, "new_peer": False}
        op["store"] = op["store"] and not barrier
        if op["store"]:
            op["store_address"] = one.dst + block * one.pitch + first * size
        if op["net"]:
            op |= {"new_peer": is_new("from", peer), "peer": peer}
        lists["receives"].append(op)

    def pass_on(block, first, elements, *, on):
        receive(pred, block, first, elements, store=True, forward=on)
        if on:
            send(succ, elements)

    def copy(source, target, first, elements):
        load("loads", source, first, elements)
        receive(None, target, first, elements, load=True, store=True)

    def reduce(block, first, elements, *, final, on):
        wide_out = wide_in and not final
        load("loads", block, first, elements, wide=bf16)
        flags = {"final": final, "wide_in": wide_in, "wide_out": wide_out, "stochastic": final and one.stochastic}
        receive(pred, 0, first, elements, load=True, store=final, forward=on, **flags)
        if on:
            send(succ, elements, wide=wide_out)

    segments = [(first, min(chunk, end - first)) for first in range(start, end, chunk)[:rounds]]
    if kind in (K.ALL_REDUCE, K.REDUCE_SCATTER, K.BARRIER):
        scatter = kind == K.REDUCE_SCATTER
        for base in range(start, end, chunk if scatter else n * chunk)[:rounds]:
            for step in range(1, n + 1 if scatter else 2 * n):
                turn = (r - d * step) % n
                block, first = (turn, base) if scatter else (0, base + turn * chunk)
                elements = min(chunk, end - first)
                if elements <= 0:
                    continue
                if step == 1:
                    give(succ, block, first, elements, wide=wide_in)
                elif step <= n:
                    reduce(block, first, elements, final=step == n, on=step < n or not scatter)
                else:
                    pass_on(0, first, elements, on=step < 2 * n - 1)
    elif kind == K.ALL_GATHER:
        for first, elements in segments:
            give(succ, 0, first, elements)
            if one.src != one.dst + r * one.pitch:
                copy(0, r, first, elements)
            for step in range(1, n):
                pass_on((r - d * step) % n, first, elements, on=step < n - 1)
    elif kind == K.BROADCAST:
        position = (r - one.root) * d % n
        if segments and position == 0:
            receive(pred, 0, start, 1)
        if segments and position == n - 1:
            give(succ, 0, start, 1, zero=True)
        for first, elements in segments:
            if position == 0:
                give(succ, 0, first, elements)
                copy(0, 0, first, elements)
            else:
                pass_on(0, first, elements, on=position < n - 1)
    elif kind == K.ALL_TO_ALL:
        for step in range(1, (n - channel) // 2 + 1):
            to, of = (r + d * step) % n, (r - d * step) % n
            give(cores[to], to, 0, count)
            receive(cores[of], of, 0, count, store=True)
        if channel == 1:
            copy(r, r, 0, count)
    elif kind == K.SEND and start < end:
        receive(root, 0, start, 1)
        give(root, 0, start, end - start)
    elif kind == K.RECEIVE and start < end:
        give(root, 0, start, 1, zero=True)
        receive(root, 0, start, end - start, store=True)
    return lists
