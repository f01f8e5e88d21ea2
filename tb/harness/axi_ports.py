"""The AXI ports of a harness's subject, tied to vectors that hold each signal of all of them (see `memories.v`)."""

from collections.abc import Sequence

from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.tb.harness import hbm

__all__ = ["axi_connections", "axi_defines", "memories_verilog"]


def _widths(hbm_bytes: int, id_bits: int) -> dict[str, int]:
    return {
        **dict.fromkeys(("awaddr", "araddr"), HBM_ADDRESS_BITS),
        **dict.fromkeys(("awlen", "arlen"), 8),
        **dict.fromkeys(("awid", "bid", "arid", "rid"), id_bits),
        **dict.fromkeys(("wdata", "rdata"), 8 * hbm_bytes),
        **dict.fromkeys(("bresp", "rresp"), 2),
        "wstrb": hbm_bytes,
        **dict.fromkeys(("awvalid", "awready", "wvalid", "wready", "wlast", "bvalid", "bready"), 1),
        **dict.fromkeys(("arvalid", "arready", "rvalid", "rready", "rlast"), 1),
    }


def axi_connections(ports: Sequence[str], hbm_bytes: int, id_bits: int, first: int = 0) -> str:
    """Return the connections of AXI ports to slices of the vectors `awvalid`, `awaddr` and so on, first one lowest.

    Arguments:
        ports: what the names of each port's signals begin with, in the subject.
        hbm_bytes: of a beat.
        id_bits: of an ID.
        first: the number of the first port in the vectors.
    """
    return " ".join(
        f".{port}__{name}({name}[{width * number} +: {width}]),"
        for number, port in enumerate(ports, first)
        for name, width in _widths(hbm_bytes, id_bits).items()
    )


def axi_defines(ports: int, hbm_bytes: int, id_bits: int) -> dict[str, str]:
    """Return the macros of a harness that has those vectors, for so many ports: their declarations, and the connections
    of `memories` to them."""
    widths = _widths(hbm_bytes, id_bits)
    return {
        "AXI_WIRES": " ".join(f"wire [{ports * width - 1}:0] {name};" for name, width in widths.items()),
        "AXI_VECTORS": " ".join(f".{name}({name})," for name in widths),
    }


def memories_verilog(check_axi: bool) -> list[str]:
    """Return the texts of the HBM of a harness; check_axi: with the checker of its ports."""
    names = ["memories.v", hbm.VERILOG.name, *(["axi_checker.v"] if check_axi else [])]
    return [hbm.VERILOG.with_name(name).read_text() for name in names]
