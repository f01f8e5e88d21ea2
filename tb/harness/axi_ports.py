"""The AXI ports of a harness's subject, tied to vectors that hold each signal of all of them."""

from collections.abc import Iterable

from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["axi_connections"]


def axi_connections(ports: Iterable[str], hbm_bytes: int, id_bits: int) -> str:
    """Return the connections of AXI ports to slices of the vectors `awvalid`, `awaddr` and so on, first one lowest.

    Arguments:
        ports: what the names of each port's signals begin with, in the subject.
        hbm_bytes: of a beat.
        id_bits: of an ID.
    """
    widths = {
        **dict.fromkeys(("awaddr", "araddr"), HBM_ADDRESS_BITS),
        **dict.fromkeys(("awlen", "arlen"), 8),
        **dict.fromkeys(("awid", "bid", "arid", "rid"), id_bits),
        **dict.fromkeys(("wdata", "rdata"), 8 * hbm_bytes),
        **dict.fromkeys(("bresp", "rresp"), 2),
        "wstrb": hbm_bytes,
        **dict.fromkeys(("awvalid", "awready", "wvalid", "wready", "wlast", "bvalid", "bready"), 1),
        **dict.fromkeys(("arvalid", "arready", "rvalid", "rready", "rlast"), 1),
    }
    return " ".join(
        f".{port}__{name}({name}[{width * number} +: {width}]),"
        for number, port in enumerate(ports)
        for name, width in widths.items()
    )
