"""Boards with UltraScale+ devices (AMD's product tables), and estimates whether a core fits; none has run a core."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["BOARDS", "MARGIN", "BoardRoom"]

MARGIN = 0.25
"""Share of each resource that must remain free for the shell, the memory controller and routing."""

RAMS_IN_URAM = 8  # block RAMs (36 Kb) per UltraRAM (288 Kb)


@dataclass(frozen=True, kw_only=True)
class BoardRoom:
    """A board: its device, the device's resources, and the source of these numbers."""

    name: str
    part: str
    luts: int
    multipliers: int
    rams: int
    urams: int
    source: str

    @property
    def registers(self) -> int:
        return 2 * self.luts

    def shares(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Return the share of each resource of the board that `counts` needs; block RAMs replace missing UltraRAMs."""
        urams = min(counts["urams"], self.urams)
        need = {
            "luts": counts["luts"],
            "registers": counts["registers"],
            "multipliers": counts["multipliers"],
            "rams": counts["rams"] + RAMS_IN_URAM * (counts["urams"] - urams),
            "urams": urams,
        }
        return {name: count / getattr(self, name) if count else 0.0 for name, count in need.items()}

    def verdict(self, counts: Mapping[str, float]) -> str:
        """Return whether `counts` fit: "yes", "tight" (less than `MARGIN` free) or "no", with the scarcest resource."""
        shares = self.shares(counts)
        name, most = max(shares.items(), key=lambda item: item[1])
        return "yes" if most <= 1 - MARGIN else f"tight: {name}" if most <= 1 else f"no: {name}"


_VIRTEX = "DS890, Virtex UltraScale+ product table"
_ZYNQ = "DS891, Zynq UltraScale+ MPSoC product table"

BOARDS = (
    BoardRoom(name="AWS F1", part="VU9P", luts=1_182_240, multipliers=6_840, rams=2_160, urams=960, source=_VIRTEX),
    BoardRoom(
        name="AWS F2", part="VU47P", luts=1_303_680, multipliers=9_024, rams=2_016, urams=960,
        source="DS890, Virtex UltraScale+ HBM product table",
    ),
    BoardRoom(
        name="Alveo U50", part="XCU50 (VU35P)", luts=871_680, multipliers=5_952, rams=1_344, urams=640, source="DS965"
    ),
    BoardRoom(
        name="Alveo U250", part="XCU250 (VU13P)", luts=1_728_000, multipliers=12_288, rams=2_688, urams=1_280,
        source="DS962",
    ),
    BoardRoom(name="KV260", part="XCK26 (ZU5EV)", luts=117_120, multipliers=1_248, rams=144, urams=64, source="DS987"),
    BoardRoom(name="ZCU102", part="ZU9EG", luts=274_080, multipliers=2_520, rams=912, urams=0, source=_ZYNQ),
    BoardRoom(name="ZCU104", part="ZU7EV", luts=230_400, multipliers=1_728, rams=312, urams=96, source=_ZYNQ),
)  # fmt: skip
