"""Random collectives, and the jobs and operations that they mean, in plain Python."""

from dataclasses import dataclass

from neuroncore_rtl.hdl.collective.job import Job
from neuroncore_rtl.spec.isa.collective import CollectiveKind, CollectiveType

K = CollectiveKind


def core_of(values, rank):
    return values["base"] + rank * values["stride"]


def job_values(values):
    """Return the fields of the job of a legal instruction, but for its signature."""
    kind, barrier = values["kind"], values["kind"] == K.BARRIER
    n, rank = values["ranks"], values["rank"]
    chunk = 32 * (values["chunk"] + 1)
    unit = chunk if kind in (K.ALL_REDUCE, K.BARRIER) else values["pitch"]
    return {
        "kind": kind,
        "op": values["op"],
        "dtype": values["dtype"] * (not barrier),
        "narrow": values["narrow"],
        "stochastic": values["stochastic"],
        "last_rank": n - 1,
        "rank": rank,
        "root": values["root"],
        "count": 1 if barrier else values["count"],
        "chunk": chunk,
        "src": values["src_address"],
        "dst": values["dst_address"],
        "stride": values["stride"] % 128,
        "core": core_of(values, rank),
        "first_core": values["base"],
        "last_core": core_of(values, n - 1),
        "root_core": core_of(values, values["root"]),
        "unit": unit,
        "own": rank * unit,
        "top": (n - 1) * unit,
        "seed": 0,
        "stream": 0,
        "signature": 0,
    }


def job_bits(values):
    return Job.as_shape().const(job_values(values)).as_value().value


@dataclass
class Lists:
    """The operations of a rank's channel, as tuples of what matters."""

    loads: list
    receives: list
    sends: list


def operations(values, channel):
    """Return the lists that a rank executes on a channel, from the description in `spec.isa.collective`."""
    kind, n, r = values["kind"], values["ranks"], values["rank"]
    barrier = kind == K.BARRIER
    d = 1 if channel == 0 else -1
    bf16 = values["dtype"] == CollectiveType.BF16 and not barrier
    size = 2 if bf16 else 4
    dtype = 0 if barrier else values["dtype"]
    wide_partials = bf16 and not values["narrow"]
    count = 1 if barrier else values["count"]
    pitch, src, dst = values["pitch"], values["src_address"], values["dst_address"]
    granules = -(-count // 32)
    half = -(-granules // 2) * 32
    start, end = ((0, min(half, count)), (min(half, count), count))[channel]
    chunk = 32 * (values["chunk"] + 1)
    lists = Lists([], [], [])
    greeted = {"to": None, "from": None}

    def core(rank):
        return core_of(values, rank % n)

    def load(block, first, elements, to_send=False, wide=False, zero=barrier):
        address = src + block * pitch + first * size
        lists.loads.append((to_send, zero, wide, dtype, elements, address))

    def send(peer, elements, *, load, wide=False, always=False):
        new = always or greeted["to"] is None
        greeted["to"] = peer
        lists.sends.append((load, wide, dtype, elements, new, peer))

    def receive(peer, block, first, elements, **flags):
        net = peer is not None
        new = net and (flags.pop("always", False) or greeted["from"] is None)
        greeted["from"] = peer if net else greeted["from"]
        flags = {f: bool(flags.get(f)) for f in ("load", "store", "forward", "final", "wide_in", "wide_out", "sr")}
        store = flags.pop("store") and not barrier
        address = dst + block * pitch + first * size if store else None
        lists.receives.append(
            (net, *flags.values(), store, barrier, values["op"], dtype, elements, address, first, new, peer)
        )

    def token(*, sends, peer):
        if sends:
            load(0, start, 1, to_send=True, zero=True)
            send(peer, 1, load=True)
        else:
            receive(peer, 0, start, 1)

    succ, pred, root = core(r + d), core(r - d), core(values["root"])
    if kind in (K.ALL_REDUCE, K.REDUCE_SCATTER, K.BARRIER):
        scatter = kind == K.REDUCE_SCATTER
        base = start
        while base < end:

            def segment(s, base=base):
                first = base if scatter else base + s % n * chunk
                return (s % n if scatter else 0), first, min(chunk, end - first)

            block, first, elements = segment(r - d)
            if elements > 0:
                load(block, first, elements, to_send=True, wide=wide_partials)
                send(succ, elements, load=True, wide=wide_partials)
            for j in range(n - 1):
                block, first, elements = segment(r - d * (j + 2))
                final = j == n - 2
                if elements > 0:
                    load(block, first, elements, wide=bf16)
                    receive(
                        pred, 0, first, elements, load=True, store=final, forward=not (final and scatter), final=final,
                        wide_in=wide_partials, wide_out=wide_partials and not final,
                        sr=final and values["stochastic"],
                    )  # fmt: skip
                    if not (final and scatter):
                        send(succ, elements, load=False, wide=wide_partials and not final)
            for j in range(0 if scatter else n - 1):
                _, first, elements = segment(r - d * (j + 1))
                if elements > 0:
                    receive(pred, 0, first, elements, store=True, forward=j < n - 2)
                    if j < n - 2:
                        send(succ, elements, load=False)
            base += chunk if scatter else n * chunk
    elif kind == K.ALL_GATHER:
        for base in range(start, end, chunk):
            elements = min(chunk, end - base)
            load(0, base, elements, to_send=True)
            send(succ, elements, load=True)
            load(0, base, elements)
            receive(None, r, base, elements, load=True, store=True)
            for j in range(n - 1):
                receive(pred, (r - d * (j + 1)) % n, base, elements, store=True, forward=j < n - 2)
                if j < n - 2:
                    send(succ, elements, load=False)
    elif kind == K.BROADCAST:
        position = (r - values["root"]) * d % n
        if position in (0, n - 1) and start < end:
            token(sends=position > 0, peer=succ if position else pred)
        for base in range(start, end, chunk):
            elements = min(chunk, end - base)
            if position == 0:
                load(0, base, elements, to_send=True)
                send(succ, elements, load=True)
                load(0, base, elements)
                receive(None, 0, base, elements, load=True, store=True)
            else:
                receive(pred, 0, base, elements, store=True, forward=position < n - 1)
                if position < n - 1:
                    send(succ, elements, load=False)
    elif kind == K.ALL_TO_ALL:
        for k in range(1, (n // 2 if channel == 0 else (n - 1) // 2) + 1):
            load((r + d * k) % n, 0, count, to_send=True)
            send(core(r + d * k), count, load=True, always=True)
            receive(core(r - d * k), (r - d * k) % n, 0, count, store=True, always=True)
        if channel == 1:
            load(r, 0, count)
            receive(None, r, 0, count, load=True, store=True)
    elif kind == K.SEND and start < end:
        token(sends=False, peer=root)
        load(0, start, end - start, to_send=True)
        send(root, end - start, load=True)
    elif kind == K.RECEIVE and start < end:
        token(sends=True, peer=root)
        receive(root, 0, start, end - start, store=True)
    return lists


def random_group(rng, cores, ranks):
    """Return base and stride of a group of so many ranks within the cores."""
    most = min(63, (cores - 1) // (ranks - 1))
    stride = int(rng.integers(1, most + 1)) * int(rng.choice((-1, 1)))
    span = stride * (ranks - 1)
    return int(rng.integers(max(0, -span), cores - max(0, span))), stride


def random_collective(rng, *, cores=128, kind=None, ranks=None, count=None, chunk=None):
    """Return the fields of a legal collective, of a rank at random; `ranks` is their number, not less one."""
    kind = CollectiveKind(int(rng.integers(8))) if kind is None else kind
    n = ranks or int(rng.choice((2, 2, 3, 4, 5, 8, 13, 64)))
    n = min(n, cores)
    base, stride = random_group(rng, cores, n)
    dtype = int(rng.integers(3))
    bf16 = dtype == CollectiveType.BF16 and kind in (K.ALL_REDUCE, K.REDUCE_SCATTER)
    chunk = int(rng.choice((0, 0, 1, 2, 6, 31))) if chunk is None else chunk
    if count is None:
        segment = 32 * (chunk + 1)
        count = int(
            rng.choice(
                (1, 31, 32, 33, segment, segment + 1, n * segment, 2 * n * segment + 32, int(rng.integers(1, 5000)))
            )
        )
    rank, root = (int(v) for v in rng.permutation(n)[:2])
    if kind == K.BROADCAST and rng.random() < 0.3:
        root = rank
    return {
        "opcode": 56,
        "kind": int(kind),
        "op": int(rng.integers(3)) if kind in (K.ALL_REDUCE, K.REDUCE_SCATTER) else 0,
        "dtype": dtype,
        "narrow": int(bf16 and rng.random() < 0.4),
        "stochastic": int(bf16 and rng.random() < 0.4),
        "chunk": chunk,
        "ranks": n,
        "base": base,
        "stride": stride,
        "rank": rank,
        "root": root,
        "count": count,
        "src_address": 64 * int(rng.integers(1 << 20)),
        "dst_address": 64 * int(rng.integers(1 << 20)),
        "pitch": 64 * (-(-4 * count // 64) + int(rng.integers(4))),
        "seed": int(rng.integers(1 << 32)),
        "stream": int(rng.integers(1 << 32)),
    }
