"""`parallel_compile`: compiles the functions of a script in parallel processes, into the cache that its runs use.

First the script runs with functions of `jit` that return zeros and write what they would compile. A process per
function then compiles it. Run as a module, this file is such a process.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from neuroncore_rtl.frontends.xla.cache import Compilation
from neuroncore_rtl.frontends.xla.jitted import RECORD
from neuroncore_rtl.run.settings import UsageError

__all__ = ["compile_script"]


def compile_script(script: str, arguments: Sequence[str], workers: int) -> int:
    """Compile what a script would run, print a line for each function, and return the exit status."""
    if not Path(script).is_file():
        raise UsageError(f"the script must be an existing file, not {script!r}")
    with TemporaryDirectory() as folder:
        with _process([sys.executable, script, *arguments], env={**os.environ, RECORD: folder}) as process:
            status = process.wait()
        if status:
            print(f"{script} ended with status {status}; what it called before is compiled")
        works = sorted(Path(folder).glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        if not works:
            print(f"{script} calls no function of `jit`")
        numbered = [(f"[{number}/{len(works)}]", work) for number, work in enumerate(works, 1)]
        with ThreadPoolExecutor(workers) as pool:
            try:
                refused = sum(pool.map(lambda one: _compiled(*one), numbered))
            except BaseException:
                _STOPPED.set()
                pool.shutdown(wait=False, cancel_futures=True)
                for process in _RUNNING:
                    process.kill()
                raise
    return int(bool(status or refused))


def _compiled(number: str, work: Path) -> bool:
    """Compile a file in a process; print a line, and return whether it failed."""
    start = time.monotonic()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with _process([sys.executable, "-m", str(__spec__ and __spec__.name), str(work)], **pipes) as process:
        found, errors = process.communicate()
    text = found.strip() or (errors.strip().splitlines() or [f"status {process.returncode}"])[-1]
    if not _STOPPED.is_set():
        print(f"{number} {text}, {time.monotonic() - start:.1f} s", flush=True)
    return process.returncode != 0


_RUNNING: set[subprocess.Popen] = set()
_STOPPED = Event()


@contextmanager
def _process(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen]:
    """Yield a process of a group of its own, which Ctrl-C does not reach; kill it at the end."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, **options)
    _RUNNING.add(process)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        _RUNNING.discard(process)


def _work(path: Path) -> int:
    work = Compilation.of_file(path)
    known = work.file and work.file.is_file()
    try:
        count = sum(map(len, work.compiled().image.records))
    except ValueError as error:
        print(f"{work.name}: {error}")
        return 1
    print(f"{work.name}: {'in the cache' if known else 'compiled'}, {count:,} instructions")
    return 0


if __name__ == "__main__":
    sys.exit(_work(Path(sys.argv[1])))
