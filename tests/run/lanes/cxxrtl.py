"""Yosys' simulator CXXRTL as the oracle."""

import ctypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from amaranth._toolchain.yosys import find_yosys

from neuroncore_rtl.hdl.verilog.yosys import run_yosys
from neuroncore_rtl.run.sim import clang

__all__ = ["Oracle"]

Widths = Mapping[str, int]

FLAGS = (
    *("-c", "-O0", "-g0", "-std=c++17", "-fPIC", "-DNDEBUG", "-fno-sanitize=all", "-Wno-everything"),
    "-D__always_inline__=__unused__",  # with forced inlining its templates take minutes
)

LINK = ("-shared", "-O2", "-fno-sanitize=all", "-mcpu=baseline", "-nostdlib++", "-lunwind")
"""Linker flags of simulators; with others zig would rebuild all its libraries."""

LOOP = """
#include "{name}.cc"
#include <cstring>
using namespace cxxrtl_design;
template <class V> static void set(V& port, const uint32_t*& words) {{
  memcpy(port.data, words, sizeof port.data);
  words += sizeof port.data / 4;
}}
template <size_t N> static const uint32_t* data(const cxxrtl::value<N>& port) {{ return port.data; }}
template <size_t N> static const uint32_t* data(const cxxrtl::wire<N>& port) {{ return port.curr.data; }}
template <class V> static void get(const V& port, size_t bits, uint32_t*& words) {{
  memcpy(words, data(port), (bits + 31) / 32 * 4);
  words += (bits + 31) / 32;
}}
extern "C" void simulate(int cycles, int instances, const uint32_t* given, const uint32_t* late, uint32_t* found) {{
  auto* tops = new {top}[instances];
  for (int cycle = 0; cycle < cycles; cycle++)
    for (int instance = 0; instance < instances; instance++) {{
      {top}& t = tops[instance];
      {set_inputs}
      t.p_clk.set<bool>(false);
      t.step();
      t.p_clk.set<bool>(true);
      t.step();
      {set_late}
      t.step();
      {get_outputs}
    }}
  delete[] tops;
}}
"""


class Oracle:
    """An RTLIL module compiled by CXXRTL; when outputs are sampled, `late` inputs have the next cycle's value."""

    def __init__(self, name: str, text: str, inputs: Widths, outputs: Widths, late: Widths, folder: Path):
        self.output_words = sum(-(-width // 32) for width in outputs.values())
        script = f"read_rtlil <<rtlil\n{text}\nrtlil\nhierarchy -top {name}\nwrite_cxxrtl -g0\n"
        (folder / f"{name}.cc").write_text(run_yosys(script))
        lines = {
            "set_inputs": [f"set(t.{_mangled(port)}, given);" for port in inputs],
            "set_late": [f"set(t.{_mangled(port)}, late);" for port in late],
            "get_outputs": [f"get(t.{_mangled(port)}, {width}, found);" for port, width in outputs.items()],
        }
        loop = LOOP.format(name=name, top=_mangled(name), **{k: "\n".join(v) for k, v in lines.items()})
        (folder / "loop.cc").write_text(loop)
        headers = Path(find_yosys(lambda version: True).data_dir(), "include", "backends", "cxxrtl", "runtime")
        clang.compile_with("c++", (*FLAGS, f"-I{headers}"), [folder / "loop.cc"], folder / "loop.o")
        clang.prepare()
        clang.compile_with("c++", LINK, [folder / "loop.o", clang.STANDARD_LIBRARY], folder / "oracle.so")
        self.library = ctypes.CDLL(str(folder / "oracle.so"))

    def simulate(self, given: np.ndarray, late: np.ndarray) -> np.ndarray:
        """Return the outputs after each clock edge; all arrays are uint32[cycles, instances, words]."""
        cycles, instances, _ = given.shape
        found = np.zeros((cycles, instances, self.output_words), np.uint32)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (given, late, found))
        self.library.simulate(cycles, instances, *pointers)
        return found


def _mangled(name: str) -> str:
    return f"p_{name.replace('_', '__')}"
