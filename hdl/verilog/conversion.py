"""Conversion of a component and all shared modules below it to Verilog.

Modules are elaborated one after the other, which takes a twentieth of the total time, then converted in parallel.
"""

import sys
from collections.abc import Callable
from typing import Protocol

from amaranth.lib import wiring

from neuroncore_rtl.hdl.verilog import text as verilog
from neuroncore_rtl.hdl.verilog.forks import Forks
from neuroncore_rtl.hdl.verilog.hierarchy import ModuleLibrary

__all__ = ["Irreplaceable", "Replacement", "below", "to_verilog"]

Replacement = Callable[[str, tuple[str, ...], dict[str, str]], str]
"""Function that returns the Verilog which replaces a block of lanes, or raises `Irreplaceable`.

Arguments: the block's name, prefixes of its lanes' module names, and RTLIL of the block and the modules below, by name.
"""


class Irreplaceable(Exception):
    """Error: a block of lanes cannot be replaced. The message names the block and the reason."""


class Store(Protocol):
    """Cache of the Verilog text of converted modules."""

    def get(self, module: str, build: Callable[[], wiring.Component], replaced: bool) -> str | None:
        """Return the cached Verilog of a module, or of its replacement, if it is up to date, else None."""

    def put(self, module: str, build: Callable[[], wiring.Component], text: str, replaced: bool) -> None:
        """Store the Verilog of a module, or of its replacement."""


def to_verilog(
    name: str,
    component: wiring.Component,
    *,
    watches_gates: bool = False,
    replaced: Replacement | None = None,
    store: Store | None = None,
) -> str:
    """Convert `component` and the shared modules below it to Verilog text, `component` last.

    The text depends only on the arguments and on the versions of Amaranth and Yosys. An irreplaceable block is
    converted as usual, with a notice on stderr.

    Arguments:
        name: Verilog name of the component's module.
        component: the component to convert.
        watches_gates: add the check of the clock gates.
        replaced: replaces blocks of lanes; default: none.
        store: cache of converted modules; default: no cache.
    """
    library = ModuleLibrary(watches_gates=watches_gates)
    met = {name: component}
    texts: dict[str, str] = {}
    stays: set[str] = set()
    with Forks() as forks:

        def convert(module: str) -> None:
            elaborated = verilog.elaborate(met[module], library)
            if module not in texts:
                forks.submit(module, _converted, module, *elaborated, joined=True)
            for inner, unit in [*library.components.items()]:
                if inner in met:
                    continue
                met[inner] = unit
                block = replaced is not None and inner in library.blocks
                text = store.get(inner, library.builds[inner], block) if store is not None else None
                if text is not None:
                    texts[inner] = text
                if not block:
                    convert(inner)
                    continue
                parts = _elaborated(inner, unit)
                if text is None:  # replacements take longest, so they start first
                    forks.submit(inner, _replaced, replaced, inner, library.blocks[inner], parts, first=True)

        convert(name)
        for module, result in forks:
            try:
                texts[module] = result()
            except Irreplaceable as reason:
                print(reason, file=sys.stderr)
                stays.add(module)
                convert(module)
            else:
                # An irreplaceable block is not stored as its own replacement: a later hit would skip the modules below
                # it.
                if store is not None and module in library.builds and module not in stays:
                    block = replaced is not None and module in library.blocks
                    store.put(module, library.builds[module], texts[module], block)
    return "\n".join([*library.texts.values(), *(texts[module] for module in reversed(met) if module in texts)])


def _converted(modules: list[tuple]) -> list[str]:
    return verilog.verilog_text(verilog.to_rtlil(name, *elaborated) for name, *elaborated in modules)


def _replaced(replaced: Replacement, name: str, of: tuple[str, ...], elaborated: dict[str, tuple]) -> str:
    return replaced(name, of, {module: verilog.to_rtlil(module, *parts) for module, parts in elaborated.items()})


def _elaborated(name: str, component: wiring.Component, library: ModuleLibrary | None = None) -> dict[str, tuple]:
    library = library or ModuleLibrary()
    elaborated: dict[str, tuple] = {}
    pending = {name: component}
    while pending:
        module, unit = pending.popitem()
        elaborated[module] = verilog.elaborate(unit, library)
        pending.update((n, c) for n, c in library.components.items() if n not in elaborated)
    return elaborated


def below(
    name: str, component: wiring.Component, library: ModuleLibrary | None = None, *, sources: bool = False
) -> dict[str, str]:
    """Return the RTLIL of a component and of the shared modules below it, by name.

    Arguments:
        name: Verilog name of the component's module.
        component: the component to convert.
        library: an empty library, filled with those modules; default: a new one.
        sources: see `hdl.verilog.text.to_rtlil`.
    """
    elaborated = _elaborated(name, component, library)
    return {module: verilog.to_rtlil(module, *parts, sources=sources) for module, parts in elaborated.items()}
