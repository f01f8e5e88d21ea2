"""Formal properties: each holds, and each proof fails for hardware with a fault of the kind it must detect.

The quick ones always run, the others are slow tests; `make formal` proves all.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from neuroncore_rtl.hdl.board.burst import BurstBuffer
from neuroncore_rtl.hdl.board.memory import BurstServer
from neuroncore_rtl.hdl.collective import loader, storer
from neuroncore_rtl.hdl.dma import chunker, writer
from neuroncore_rtl.hdl.host.axi_lite import AxiLiteBridge
from neuroncore_rtl.hdl.host.isolation import AxiIsolation
from neuroncore_rtl.hdl.link.router import RouterOutput
from neuroncore_rtl.hdl.memory.axi_arbiter import AxiArbiter
from neuroncore_rtl.hdl.memory.bank_arbiter import BankArbiter
from neuroncore_rtl.hdl.memory.line_arbiter import LineReadArbiter
from neuroncore_rtl.hdl.memory.read_arbiter import ReadArbiter
from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin
from neuroncore_rtl.hdl.queue.fetch import Fetcher
from neuroncore_rtl.hdl.queue.in_flight import InFlight
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.hdl.queue.words import WordReader
from neuroncore_rtl.tb.proofs import arbiters, axi, queue, semaphores, solver
from neuroncore_rtl.tb.proofs.proof import Proof
from tests.tb.proofs.mutants import change

PROOFS = {f"{unit.__name__.rpartition('.')[2]}: {p.name}": p for unit in (arbiters, axi, queue, semaphores)
          for p in unit.PROOFS}  # fmt: skip

QUICK = {"arbiters: round robin of 3", "arbiters: shared line port"}  # a few seconds each


class Fault(NamedTuple):
    proof: str
    method: Callable
    was: str
    now: str


FAULTS = (
    Fault("arbiters: round robin of 3", RoundRobin.elaborate, "m.d.sync += behind", "m.d.comb += Signal(3)"),
    Fault("arbiters: shared line port", LineReadArbiter.elaborate, "port.valid & port.ready)", "port.valid & 0)"),
    Fault("arbiters: banks of SBUF and PSUM", BankArbiter._precedes, "~self._urgent[second - self.engines]", "True"),
    Fault("arbiters: output of a router", RouterOutput.elaborate, "self.SHARE - 1", "self.SHARE"),
    Fault("axi: DMA engine, reads", chunker.Chunker.elaborate, "grid - run.address[: (grid - 1).bit_length()]", "grid"),
    Fault("axi: DMA engine, writes", writer.HbmWriter._write_burst, "+ chunk.bytes - 1)", "+ chunk.bytes)"),
    Fault("axi: record fetcher", Fetcher.elaborate, "~asking | (axi.ar.ready & (self.config.port_latency == 0))", "1"),
    Fault("axi: boot, words", WordReader._ask, "page_rest > MAX_BEATS", "page_rest > 0"),
    Fault("axi: collective loader", loader.CollectiveLoader._request_words, "(word & (BURST_BEATS - 1))", "0"),
    Fault("axi: collective loads, both sides", ReadArbiter.elaborate, "held.eq(ar.valid & ~ar.ready)", "held.eq(0)"),
    Fault("axi: collective storer", storer.Storer._collect, "len.eq(word - start)", "len.eq(word)"),
    Fault("axi: host link", BurstBuffer.elaborate, "axi.aw.valid.eq(~addressed)", "axi.aw.valid.eq(1)"),
    Fault("axi: HBM arbiter, both sides", AxiArbiter._pass_addresses, "~port.valid | port.ready", "1"),
    Fault("axi: isolation", AxiIsolation._pass_beats, "beat.last.eq(last)", "beat.last.eq(source.payload.last)"),
    Fault("axi: AXI4-Lite bridge", AxiLiteBridge.elaborate, "axi.b.valid & axi.b.ready", "axi.b.valid"),
    Fault("axi: board memory", BurstServer.elaborate, "Mux(exists, self.answers.payload, 0)", "self.answers.payload"),
    Fault(
        "queue: in order, each once", InFlight.elaborate, "finishing.addr.eq(finished)", "finishing.addr.eq(started)"
    ),
    Fault(
        "semaphores: no update is lost",
        Semaphores._change,
        "self.updated & ~refused",
        "self.updated & ~refused & ~self.access.valid",
    ),
)


def slow_unless_quick(name: str, *values):
    return pytest.param(*values, id=name, marks=[] if name in QUICK else [pytest.mark.slow])


def verdict(proof: Proof):
    return solver.prove(proof.model(), proof.depth, proof.method, timeout=3600)


@pytest.mark.parametrize("proof", [slow_unless_quick(name, proof) for name, proof in PROOFS.items()])
def test_holds(proof):
    assert verdict(proof).holds


@pytest.mark.parametrize("fault", [slow_unless_quick(f.proof, f) for f in FAULTS])
def test_fault_is_found(fault, monkeypatch):
    change(monkeypatch, fault.method, fault.was, fault.now)
    found = verdict(PROOFS[fault.proof])
    assert not found.holds and "Assert failed" in found.log


def test_every_proof_has_a_fault():
    alike = {name for name in PROOFS if name.startswith("arbiters: round robin")}
    assert {fault.proof for fault in FAULTS} | alike == set(PROOFS)
