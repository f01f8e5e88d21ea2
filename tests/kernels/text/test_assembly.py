"""Assembly language."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.kernels.text.assembly import assemble, disassemble, parse_record, record_text
from neuroncore_rtl.spec import instance, isa
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import BF16, FP32, INT8
from neuroncore_rtl.spec.isa import Record, Storage, Update, UpdateOp, Wait
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group, ReduceOp
from neuroncore_rtl.tb.stimulus import collective_programs, core_programs

SEED = 6174
TINY = preset_named("tiny")
INSTANCE = instance.Instance(chips=4, core=TINY)


@pytest.fixture(scope="module")
def image():
    print(f"seed {SEED}")
    return core_programs.random_core_program(np.random.default_rng(SEED), TINY, 400).image()


def test_every_record_comes_back_as_it_was_and_as_bits(image, rng):
    lists = collective_programs.random_workload(rng, INSTANCE, 30, 4096).lists
    options = {"waits": (Wait(3, 4),), "updates": (Update(1), Update(7, 2, UpdateOp.SUBTRACT))}
    collectives = [Record(instruction=one, **options) for some in lists.values() for one in some]
    records = [record for part in image.records for record in part] + collectives
    for record in records:
        assert parse_record(record_text(record)) == record
        bits = record.encode(TINY)
        full = Record.decode(bits, TINY)
        short = full.shortened()
        assert parse_record(record_text(full)).encode(TINY) == parse_record(record_text(short)).encode(TINY) == bits
        assert len(record_text(short)) <= len(record_text(full))
    opcodes = {record.instruction.opcode for record in records if isinstance(record.instruction, isa.Elementwise)}
    assert opcodes == set(isa.Opcode) and {record.engine for record in records} == set(isa.Engine)
    assert {record.instruction.kind for record in collectives} == set(CollectiveKind)


def test_a_program_comes_back(image):
    parts = [(block.queue, records) for block, records in zip(image.blocks, image.records, strict=True)]
    expected = [(isa.queue_name(queue, TINY), list(records)) for queue, records in parts]
    assert assemble(disassemble(parts, TINY)) == expected


def test_collectives_stand_in_their_queue():
    program = Program(INSTANCE.core, core=3)
    program.append(Collective(kind=CollectiveKind.BARRIER, group=Group(0, 1, 8), rank=3))
    (block,), (records,) = build_image(program).blocks, build_image(program).records
    text = disassemble([(block.queue, records)], INSTANCE.core)
    assert text == "queue collective\n    barrier group=0+1x8 rank=3\n"
    assert assemble(text) == [("collective", list(records))]


A = isa.Access(format=BF16, address=0x100, partition=2, steps=(-8, 1))
RECORDS = {
    "tensor_scalar partitions=2 shape=2x8 dst=sbuf[2,0x100].bf16(-8,1) a=psum[0,0x0].fp32(8,1) op0=multiply reverse0 "
    "s0=[0,0x40].fp32 overlap | wait s3>=4 | signal s7+1 s8=0": Record(
        instruction=isa.Elementwise(
            opcode=isa.Opcode.TENSOR_SCALAR, partitions=2, shape=(2, 8), dst=A, op0=isa.AluOp.MULTIPLY, reverse0=True,
            a=isa.Access(format=FP32, address=0, storage=Storage.PSUM, steps=(8, 1)),
            s0=isa.Pointer(format=FP32, address=0x40), overlap=True,
        ),
        waits=(Wait(3, 4),), updates=(Update(7), Update(8, 0, UpdateOp.SET)),
    ),
    "dma_copy shape=3x8 src=hbm[0x1000].int8(64,1) dst=sbuf[1,0x20].int8(p-1,1) gather=[0,0x80]<64 "
    "| wait s0>=1 s255>=65535": Record(
        instruction=isa.DmaCopy(
            shape=(3, 8), src=isa.DmaTensor(format=INT8, address=0x1000, storage=Storage.HBM, steps=(64, 1)),
            dst=isa.DmaTensor(format=INT8, address=0x20, storage=Storage.SBUF, partition=1, steps=(-1, 1), axis=0),
            gather=isa.DmaIndex(address=0x80, limit=64),
        ),
        waits=(Wait(0, 1), Wait(255, 65535)),
    ),
    "dma_copy shape=3x8 src=psum[0,0x20].fp32(p1,1) dst=hbm[0x1000].fp32(64,1) scatter=[2,0x80]<64? "
    "| signal s7+1": Record(
        instruction=isa.DmaCopy(
            shape=(3, 8), dst=isa.DmaTensor(format=FP32, address=0x1000, storage=Storage.HBM, steps=(64, 1)),
            src=isa.DmaTensor(format=FP32, address=0x20, storage=Storage.PSUM, steps=(1, 1), axis=0),
            scatter=isa.DmaIndex(address=0x80, partition=2, limit=64, skip=True),
        ),
        updates=(Update(7),),
    ),
    "multiply_moving format=bf16 k=4 address=0x40 m=4 n=32 stride=2 psum=512 accumulate | signal s9-2": Record(
        instruction=isa.MultiplyMoving(format=BF16, k=4, m=4, n=32, address=0x40, stride=2, psum=512, accumulate=True),
        updates=(Update(9, 2, UpdateOp.SUBTRACT),),
    ),
    "all_reduce group=6-2x4 rank=1 count=4096 dtype=bf16 src=0x1000 dst=0x2000 op=max chunk=16 narrow seed=0x7b "
    "| wait s3>=4 | signal s7+1": Record(
        instruction=Collective(
            kind=CollectiveKind.ALL_REDUCE, group=Group(6, -2, 4), rank=1, count=4096, dtype=CollectiveType.BF16,
            src=0x1000, dst=0x2000, op=ReduceOp.MAX, chunk=16, narrow=True, seed=123,
        ),
        waits=(Wait(3, 4),), updates=(Update(7),),
    ),
    "nop | wait s3>=4 s5>=1 | signal s7+1 s8+2": Record(
        instruction=isa.Nop(), waits=(Wait(3, 4), Wait(5, 1)), updates=(Update(7), Update(8, 2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", RECORDS, ids=lambda text: text.split()[0])
def test_lines_say_what_they_mean(text):
    assert parse_record(text) == RECORDS[text]
    assert record_text(RECORDS[text]) == text


def test_comments_and_blank_lines_mean_nothing():
    text = "# all\n\nqueue tensor  # the first\n  load_stationary format=bf16 k=4 m=4 address=0 # weights\n"
    ((name, records),) = assemble(text)
    assert name == "tensor" and len(records) == 1


@pytest.mark.parametrize(
    "line, message",
    [
        ("frobnicate", "line 2: an instruction must be one of load_stationary, multiply_moving, dma_copy, tensor_copy"),
        ("load_stationary format=bf16 k=4 m=4", "line 2: load_stationary: missing address"),
        ("load_stationary n=4", "line 2: a field of load_stationary must be one of format, half, k, address, row, co"),
        ("load_stationary k=4 k=5", "line 2: duplicate field k"),
        ("load_stationary k=four", "line 2: a number must be decimal, or hexadecimal with 0x, not 'four'"),
        ("load_stationary format=fp64", "line 2: format must be one of fp32, "),
        ("memset dst=sbuf[0].fp32(1", "line 2: a tensor must be like sbuf"),
        ("tensor_tensor op0=plus", "line 2: op0 must be one of bypass, add, "),
        ("barrier rank=1", "line 2: barrier: missing group"),
        ("send group=0+1 rank=1", "line 2: group must be like 0.1x8, not '0.1'"),
        ("send kind=3", "line 2: a field of send must be one of group, rank, count, "),
        ("all_reduce op=add", "line 2: op must be one of sum, max, min, not 'add'"),
        ("all_reduce dtype=fp16", "line 2: dtype must be one of fp32, bf16, int32, not 'fp16'"),
        ("memset s0=[1]", "line 2: s0 must be like"),
        ("dma_copy src=sbuf[0,0x0].bf16(p1,p1)", "line 2: at most one dimension may step along the partitions"),
        ("memset | wait s3>4", "line 2: a wait must be like s3>=4, not 's3>4'"),
        ("memset | signal s3*4", "line 2: a signal must be like"),
        ("memset | sleep", "line 2: wait or signal must follow a bar, not 'sleep'"),
    ],
)  # fmt: skip
def test_refusals(line, message):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        assemble(f"queue vector\n{line}\n")
    with pytest.raises(ValueError, match="line 1: the first line must name a queue, not"):
        assemble(line)
