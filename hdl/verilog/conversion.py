"""A component and all shared modules below it as Verilog.

Modules are elaborated one after the other, which takes a twentieth of the time and finds the modules below. They are
then converted in processes of their own, as many at a time as there are processors, some modules in each.
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
"""Gets a block's name, how the names of its lanes begin, and the RTLIL of it and of the modules below it; returns the
Verilog that takes its place, or raises :class:`Irreplaceable`."""


class Irreplaceable(Exception):
    """A block of lanes has to stay as it is; the message names it, and why."""


class Store(Protocol):
    """Texts of earlier conversions."""

    def get(self, module: str, build: Callable[[], wiring.Component], replaced: bool) -> str | None:
        """Return the text of a module, named and made so, or of what is in its place, if there is one that is still
        right."""

    def put(self, module: str, build: Callable[[], wiring.Component], text: str, replaced: bool) -> None:
        """Keep the text of a module, or of what is in its place."""


def to_verilog(
    name: str,
    component: wiring.Component,
    *,
    watches_gates: bool = False,
    replaced: Replacement | None = None,
    store: Store | None = None,
) -> str:
    """Convert `component` and the shared modules below it to Verilog text, `component` last.

    The text depends on the parameters and the versions of Amaranth and Yosys alone. With `watches_gates` it is one for
    simulations that check the clock gates, too; with `replaced`, for those that have another way for blocks of lanes.
    What is irreplaceable stays as it is, which is said on stderr. Modules below that are in the `store` are not
    converted again.
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
                if text is None:  # these take longest, so they begin first
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
                # What stays is not kept in place of what would replace it: that would hide the modules below it.
                if store is not None and module in library.builds and module not in stays:
                    block = replaced is not None and module in library.blocks
                    store.put(module, library.builds[module], texts[module], block)
    return "\n".join([*library.texts.values(), *(texts[module] for module in reversed(met) if module in texts)])


def _converted(modules: list[tuple]) -> list[str]:
    """Return the Verilog of modules: of each its name and what `verilog.elaborate` returned."""
    return verilog.verilog_text(verilog.to_rtlil(name, *elaborated) for name, *elaborated in modules)


def _replaced(replaced: Replacement, name: str, of: tuple[str, ...], elaborated: dict[str, tuple]) -> str:
    return replaced(name, of, {module: verilog.to_rtlil(module, *parts) for module, parts in elaborated.items()})


def _elaborated(name: str, component: wiring.Component, library: ModuleLibrary | None = None) -> dict[str, tuple]:
    """Return a component and the shared modules below it as `verilog.elaborate` returns them, by name."""
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
        name: of the component's module. component: it.
        library: an empty one, which gets what is met: those modules, and those that are Verilog from the start.
        sources: see :func:`hdl.verilog.text.to_rtlil`.
    """
    elaborated = _elaborated(name, component, library)
    return {module: verilog.to_rtlil(module, *parts, sources=sources) for module, parts in elaborated.items()}
