"""Pictures of the documents. `python -m neuroncore_rtl.tb.cli.pictures` writes them into `docs/`."""

from itertools import pairwise

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.view.diagram import Box, Diagram
from neuroncore_rtl.spec.isa.record import HEADER_BITS, HEADER_FIELDS, RECORD_BITS, RECORD_BYTES

__all__ = ["PICTURES", "draw_pictures"]


def machine() -> Diagram:
    """Draw a core with its memories, engines and queues."""
    d = Diagram(1000, 650, "A core: data, instructions and signals")
    d.frame(182, 14, 806, 590, "core")
    router = d.box("link", 14, 34, 120, 62, "Router", "links, both ways")
    d.box("memory", 14, 130, 120, 370, "HBM", "AXI4, 1 to 4 ports,", "latency and", "bandwidth as set")
    collectives = d.box("engine", 206, 34, 132, 62, "Collectives", "reduce in transit")
    texts = "1 to 16 engines:", "strides, casts,", "transposition,", "gather, scatter"
    d.box("engine", 206, 130, 132, 260, "DMA", *texts)
    d.box("memory", 424, 34, 124, 356, "SBUF", "128 partitions", "x 192 KiB", "in 8 banks")
    d.box("engine", 650, 34, 150, 150, "Tensor engine", "128 x 128 elements,", "weights stay in place")
    psum = d.box("memory", 872, 34, 100, 150, "PSUM", "2 MiB of", "FP32 sums")
    d.box("engine", 650, 222, 150, 70, "Vector engine", "128 lanes, two ALUs")
    d.box("engine", 650, 320, 150, 70, "Scalar engine", "128 lanes, f(x s + b)")
    steps = "fetch a record of 128 bytes, wait for semaphores, issue, retire, update semaphores"
    d.box("control", 206, 440, 594, 60, "Queues, one per engine", steps)
    d.box("control", 206, 536, 170, 54, "Semaphores", "256, shared by all queues")
    d.box("control", 424, 536, 170, 54, "Controller", "RISC-V, programs in C")
    d.box("control", 642, 536, 158, 54, "Watchdog", "first error, deadlocks")
    d.arrow(router.right(), collectives.left(), both=True)
    d.arrow((138, 160), (168, 160), (168, 84), (202, 84), both=True)
    for start, end in (((138, 250), (202, 250)), ((342, 250), (420, 250)), ((552, 257), (646, 257))):
        d.arrow(start, end, both=True)
    d.arrow((552, 355), (646, 355), both=True)
    d.arrow((552, 75), (646, 75), label="stationary")
    d.arrow((552, 135), (646, 135), label="moving")
    d.arrow((804, 100), psum.left(0.44), label="sums")
    d.arrow((910, 188), (910, 246), (804, 246), both=True)
    d.arrow((934, 188), (934, 344), (804, 344), both=True)
    d.arrow((138, 470), (202, 470), kind="control", label="records")
    d.arrow((272, 436), (272, 394), kind="control")
    d.arrow((804, 470), (836, 470), (836, 160), (804, 160), kind="control")
    d.arrow((836, 272), (804, 272), kind="control")
    d.arrow((836, 370), (804, 370), kind="control")
    d.arrow((291, 504), (291, 532), kind="control", both=True)
    d.arrow((509, 532), (509, 504), kind="control", label="doorbells")
    d.arrow((721, 504), (721, 532), kind="control")
    d.arrow((420, 563), (380, 563), kind="control", both=True)
    d.legend(206, 628, "memory", "engine", "control", "link")
    return d


def tensor_engine() -> Diagram:
    """Draw the tensor engine: two instruction paths into one array, which writes sums to PSUM."""
    d = Diagram(1000, 360, "Tensor engine: loads and multiplications meet in the systolic array")
    queue = d.box("control", 14, 40, 130, 64, "Queue", "records in order")
    checker = d.box("control", 184, 40, 130, 64, "Checker", "rules of the ISA")
    loader = d.box("control", 354, 14, 150, 56, "Loader", "4 columns per cycle")
    mover = d.box("control", 354, 82, 150, 56, "Mover", "1 column per cycle")
    sbuf = d.box("memory", 354, 206, 130, 110, "SBUF", "one line of every", "partition per bank")
    edge = d.box("engine", 566, 206, 140, 110, "Edge", "decodes any format", "to array operands;", "skews the rows")
    texts = "rows x columns", "multiply-accumulate", "weights stay,", "sums move down"
    array = d.box("engine", 740, 150, 150, 166, "Array", *texts)
    psum = d.box("memory", 740, 34, 150, 64, "PSUM", "FP32, 8 banks")
    d.arrow(queue.right(), checker.left(), kind="control")
    d.arrow(checker.right(), (334, 72), (334, 42), loader.left(), kind="control")
    d.arrow(checker.right(), (334, 72), (334, 110), mover.left(), kind="control")
    d.arrow((429, 142), (429, 202), kind="control", label="addresses")
    d.arrow((508, 42), (530, 42), (530, 186), (390, 186), (390, 202), kind="control")
    d.arrow(sbuf.right(0.3), edge.left(0.3), label="stationary")
    d.arrow(sbuf.right(0.7), edge.left(0.7), label="moving")
    d.arrow(edge.right(), (array.left()[0], edge.right()[1]))
    d.arrow(array.top(0.35), psum.bottom(0.35), label="sums")
    d.arrow(psum.bottom(0.75), array.top(0.75), label="accumulate")
    d.legend(14, 344, "memory", "engine", "control")
    return d


def _lane(d: Diagram, operands: str, *stages: tuple[str, ...]) -> list[Box]:
    """Draw a datapath: front end, memory, pipeline stages (name and lines of text), memory; return the stages."""
    front = d.box("control", 14, 30, 150, 60, "Front end", "checks and steps")
    memory = d.box("memory", 14, 140, 110, 110, "Memory", operands, "SBUF or PSUM")
    boxes = [d.box("engine", 164 + 138 * n, 140, 110, 110, *texts) for n, texts in enumerate(stages)]
    result = d.box("memory", 164 + 138 * len(stages), 140, 110, 110, "Memory", "result dst", "SBUF or PSUM")
    for left, right in pairwise([memory, *boxes, result]):
        d.arrow(left.right(), right.left())
    d.arrow((69, 94), (69, 136), kind="control", label="addresses")
    text = "control word, delayed with the data"
    d.arrow(front.right(), (boxes[2].top()[0], 60), boxes[2].top(), kind="control", label=text)
    return boxes


def vector_engine() -> Diagram:
    """Draw the pipeline of a vector lane."""
    d = Diagram(1000, 330, "Vector engine: the pipeline of one lane")
    _lane(
        d,
        "operands a, b",
        ("Widen", "to FP32", "or INT32"),
        ("ALU 0", "a op0 s0"),
        ("ALU 1", "result op1 b", "or s1"),
        ("Extras", "negate, dropout,", "statistics"),
        ("Cast", "round or", "saturate"),
    )
    d.arrow((473, 254), (473, 276), (519, 276), (519, 254))
    d.text(496, 293, "running result of a reduction or scan", "small mid")
    d.legend(14, 318, "memory", "engine", "control")
    return d


def scalar_engine() -> Diagram:
    """Draw the pipeline of an activation lane."""
    d = Diagram(1000, 350, "Scalar engine: the pipeline of one lane")
    boxes = _lane(
        d,
        "operand a, bias",
        ("Widen", "any format", "to FP32"),
        ("Affine", "a * scale + bias"),
        ("Function", "argument, table,", "polynomial"),
        ("Sum", "running sum", "of the results"),
        ("Cast", "round, nearest", "or stochastic"),
    )
    tables = d.box("memory", boxes[2].x, 280, 110, 32, "", "coefficient tables")
    d.arrow(tables.top(), boxes[2].bottom())
    d.legend(14, 338, "memory", "engine", "control")
    return d


def dma_engine() -> Diagram:
    """Draw a DMA engine: a source side and a destination side around one byte stream."""
    d = Diagram(1000, 330, "DMA engine: source side and destination side")
    queue = d.box("control", 14, 24, 120, 60, "Queue", "copies in order")
    checker = d.box("control", 170, 24, 120, 60, "Checker", "rules of the ISA")
    sequencer = d.box("control", 326, 24, 140, 60, "Sequencer", "one job per copy")
    source = d.box("control", 520, 14, 190, 52, "Source addresses", "chunks of up to a beat")
    target = d.box("control", 780, 14, 206, 52, "Destination addresses", "chunks of up to a beat")
    memory = d.box("memory", 326, 160, 130, 96, "Source", "HBM, SBUF or PSUM")
    reader = d.box("engine", 500, 160, 110, 96, "Reader", "aligns beats")
    caster = d.box("engine", 640, 160, 100, 96, "Caster", "changes", "the format")
    ring = d.box("engine", 770, 160, 76, 96, "Ring", "buffer")
    writer = d.box("engine", 876, 160, 110, 96, "Writer", "to HBM, SBUF", "or PSUM")
    d.arrow(queue.right(), checker.left(), kind="control")
    d.arrow(checker.right(), sequencer.left(), kind="control")
    d.arrow(sequencer.right(16 / 60), source.left(26 / 52), kind="control")
    d.arrow(sequencer.right(0.9), (745, 78), (745, 40), target.left(), kind="control")
    d.arrow((555, 70), reader.top(), kind="control")
    d.arrow((931, 70), writer.top(), kind="control")
    for left, right in ((memory, reader), (reader, caster), (caster, ring), (ring, writer)):
        d.arrow(left.right(), right.left())
    d.arrow((390, 156), (390, 88), kind="control", label="row numbers")
    d.text(660, 284, "one stream of bytes; copy n + 1 reads while copy n writes", "small mid")
    d.legend(14, 316, "memory", "engine", "control")
    return d


def collective_engine() -> Diagram:
    """Draw a collective engine: two channels, one per direction of the ring."""
    d = Diagram(1000, 370, "Collective engine: two channels in opposite directions")
    queue = d.box("control", 14, 30, 120, 64, "Queue", "one operation", "at a time")
    checker = d.box("control", 14, 137, 120, 64, "Checker", "rules, ranks")
    router = d.box("link", 866, 14, 120, 310, "Router", "links to both", "neighbours")
    for number, y in enumerate((14, 180)):
        hbm = d.box("memory", 234, y, 120, 144, "HBM", f"port {number}")
        d.frame(424, y, 380, 144, f"channel {number}")
        load = d.box("engine", 440, y + 14, 96, 46, "Loader")
        store = d.box("engine", 440, y + 82, 96, 46, "Storer")
        reduce = d.box("engine", 566, y + 82, 96, 46, "Reduce")
        send = d.box("engine", 692, y + 14, 96, 46, "Sender")
        d.arrow((hbm.right()[0], load.left()[1]), load.left())
        d.arrow(store.left(), (hbm.right()[0], store.left()[1]))
        d.arrow(load.right(), send.left())
        d.arrow((600, y + 37), (600, y + 78))
        d.arrow(reduce.left(), store.right())
        d.arrow((640, y + 78), (640, y + 50), (688, y + 50))
        d.arrow(send.right(), (router.left()[0], send.right()[1]))
        d.arrow((router.left()[0], y + 105), (666, y + 105))
        d.arrow(checker.right(), (394, 169), (394, y + 122), (420, y + 122), kind="control")
    halves = "first half of the vector through channel 0, second half, in the other direction, through channel 1"
    d.text(394, 344, halves)
    d.arrow(queue.bottom(), checker.top(), kind="control")
    d.legend(14, 362, "memory", "engine", "control", "link")
    return d


def queue() -> Diagram:
    """Draw a queue."""
    d = Diagram(1000, 300, "Queue: the life of a record")
    doorbell = d.box("control", 14, 40, 130, 64, "Doorbell", "address and count", "of a block")
    fetch = d.box("control", 184, 40, 130, 64, "Fetch", "records ahead", "of their turn")
    wait = d.box("control", 354, 40, 130, 64, "Wait", "two semaphores")
    issue = d.box("control", 524, 40, 130, 64, "Issue", "instruction")
    engine = d.box("engine", 694, 40, 130, 64, "Engine", "executes")
    retire = d.box("control", 864, 40, 122, 64, "Retire", "two updates")
    d.box("control", 354, 180, 300, 64, "Semaphores", "16-bit counters shared by all queues")
    hbm = d.box("memory", 184, 180, 130, 64, "HBM", "records of 128 bytes")
    for left, right in ((doorbell, fetch), (fetch, wait), (wait, issue), (issue, engine), (engine, retire)):
        d.arrow(left.right(), right.left(), kind="control")
    d.arrow(hbm.top(), fetch.bottom())
    d.arrow((419, 176), (419, 108), kind="control", label="at least a value?")
    d.arrow((925, 108), (925, 212), (658, 212), kind="control")
    d.text(790, 206, "set, add, subtract", "small mid")
    d.legend(14, 284, "memory", "engine", "control")
    return d


def record() -> Diagram:
    """Draw the 128-byte record, and its header to scale with the first bit of each field."""
    d = Diagram(1000, 250, "Record: 128 bytes, a header and an instruction")
    text = f"record of {RECORD_BYTES} bytes, bit 0 at the left; below, the header: engine, two waits, two updates"
    d.text(14, 24, text, "small")
    width = 972 / 8
    d.box("control", 14, 34, width, 44, "", "header")
    text = f"instruction of the engine, bits {HEADER_BITS} to {RECORD_BITS - 1}"
    d.box("engine", 14 + width, 34, 972 - width, 44, "", text)
    d.arrow((14, 82), (14, 116), kind="control")
    d.arrow((14 + width, 82), (14 + width, 98), (986, 98), (986, 116), kind="control")
    x, bit = 14.0, 0
    short = {"semaphore": "sem", "reserved": "reserved", "engine": "", "value": "value"}
    kinds = {"wait": "memory", "upda": "link", "engi": "control", "rese": "plain"}
    for name, bits in HEADER_FIELDS:
        size = 972 * bits / HEADER_BITS
        d.box(kinds[name[:4]], x, 120, size, 52, "", *([short[name.rpartition("_")[2]]] if bits > 2 else []))
        if bits > 2:
            d.text(x + 1, 188, str(bit))
        x, bit = x + size, bit + bits
    for name, at in (("wait 0", 15), ("wait 1", 40), ("update 0", 66), ("update 1", 92)):
        d.text(14 + 972 * at / HEADER_BITS, 212, name, "name mid")
    text = (
        "Wait until the semaphore is at least the value. Update after the instruction: set, add or subtract the value."
    )
    d.text(14, 238, text)
    return d


def softmax() -> Diagram:
    """Draw softmax as dataflow over the engines."""
    d = Diagram(1000, 300, "Softmax of a tile: dataflow over DMA, vector and scalar engine")
    load = d.box("memory", 14, 100, 110, 72, "DMA load", "x to SBUF")
    top = d.box("engine", 164, 100, 130, 72, "Vector", "bias = -max(x)")
    power = d.box("engine", 334, 100, 190, 72, "Scalar", "power = exp(x + bias)", "total = sum(power)")
    inverse = d.box("engine", 564, 100, 130, 72, "Vector", "total = 1 / total")
    product = d.box("engine", 734, 100, 130, 72, "Vector", "y = power * total")
    store = d.box("memory", 884, 100, 102, 72, "DMA store", "y to HBM")
    for left, right in ((load, top), (top, power), (power, inverse), (inverse, product), (product, store)):
        d.arrow(left.right(), right.left())
    d.arrow(load.bottom(), (69, 210), (429, 210), power.bottom(), label="x")
    d.arrow(power.top(), (429, 60), (799, 60), product.top(), label="power")
    text = "While the scalar engine computes the exponentials of tile n, the vector engine divides tile n - 1."
    d.text(500, 252, text, "small mid")
    d.legend(14, 286, "memory", "engine")
    return d


def mac() -> Diagram:
    """Draw the five stages of a multiply-accumulate unit."""
    d = Diagram(1000, 250, "Multiply-accumulate unit: five stages")
    operands = d.box("memory", 14, 120, 110, 72, "x and w", "12-bit", "significands")
    total = d.box("memory", 184, 14, 130, 56, "acc", "FP32, from above")
    stages = [
        ("Multiply", "24-bit product", "exponent gap"),
        ("Align", "shift the number", "that is smaller"),
        ("Add", "28 bits", "count zeros"),
        ("Normalise", "leading one", "to the top"),
        ("Round", "to nearest even", "once"),
    ]
    boxes = [d.box("engine", 164 + 142 * number, 112, 122, 88, *texts) for number, texts in enumerate(stages)]
    out = d.box("memory", 894, 120, 92, 72, "sum", "FP32, down")
    for left, right in zip([operands, *boxes], [*boxes, out], strict=True):
        d.arrow(left.right(), right.left())
    d.arrow((225, 74), (225, 108))
    d.arrow(total.right(), (367, 42), (367, 108))
    d.legend(14, 234, "memory", "engine")
    return d


def tiling() -> Diagram:
    """Draw a product in tiles."""
    d = Diagram(1000, 330, "A product of 8 x 8 by 8 x 8 on an array of 4 x 4")
    size, tops = 92, (48, 146)
    for left, name in ((14, "A, 8 x 8"), (304, "B, 8 x 8"), (700, "C, 8 x 8, in PSUM")):
        d.text(left, 34, name, "name")
    for row, top in enumerate(tops):
        for column in range(2):
            number = 2 * row + column + 1
            d.box("memory", 14 + 98 * column, top, size, size, f"A{row}{column}", f"load {number}")
        d.box("link", 304, top, 190, size, f"B{row}", "8 columns move")
        d.box("engine", 700, top, 190, size, f"C{row}", f"= A{row}0 B0 + A{row}1 B1")
    d.text(240, 150, "x", "name")
    d.text(590, 150, "=", "name")
    d.text(14, 268, "1. Load A00, move B0: PSUM = A00 B0.     2. Load A01, move B1: PSUM += A01 B1.")
    d.text(14, 290, "3. Load A10, move B0: next words of PSUM = A10 B0.     4. Load A11, move B1: PSUM += A11 B1.")
    return d


def ring() -> Diagram:
    """Draw the eight cores of four chips on a ring."""
    d = Diagram(1000, 300, "Ring of four chips with two cores each")
    chips = []
    for chip in range(4):
        x = 30 + 244 * chip
        d.frame(x, 70, 196, 150, f"chip {chip}")
        for core in range(2):
            d.box("engine", x + 14 + 88 * core, 86, 80, 62, f"rank {2 * chip + core}", "1/8 of it")
        chips.append(d.box("link", x + 14, 162, 110, 40, "router"))
    for left, right in zip(chips, chips[1:], strict=False):
        d.arrow(left.right(0.3), right.left(0.3), both=True)
    d.arrow((99, 206), (99, 250), (831, 250), (831, 206), both=True)
    d.text(110, 268, "both directions carry data in each cycle")
    text = "After 7 steps each rank has the sum of one eighth of the vector. After 7 more steps it has the whole sum."
    d.text(30, 40, text)
    return d


PICTURES = {
    draw.__name__: draw
    for draw in (
        machine, tensor_engine, vector_engine, scalar_engine, dma_engine, collective_engine, queue, record, softmax,
        mac, tiling, ring,
    )
}  # fmt: skip


def draw_pictures() -> None:
    """Write all pictures."""
    folder = ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw().svg())


if __name__ == "__main__":
    draw_pictures()
