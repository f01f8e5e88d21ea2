"""Process of SUITE=jax: JAX's own test cases on the machine, a line of JSON for each.

python -m neuroncore_rtl.tb.tests.oracle.platform_cases FILE SECONDS CASE... runs cases by name; without cases it prints
all names.
"""

import importlib
import importlib.util
import json
import logging
import os
import signal
import sys
import threading
import time
import unittest
from collections.abc import Iterator
from pathlib import Path

from neuroncore_rtl.frontends.pjrt import initialize


def _cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from _cases(one)
        else:
            yield one


def _loaded(path: Path) -> dict[str, unittest.TestCase]:
    """Return the cases of a file by name."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    importlib.import_module("absl.flags").FLAGS([sys.argv[0]])  # JAX's tests read flags, and bring this package
    found = _cases(unittest.defaultTestLoader.loadTestsFromModule(module))
    return {f"{type(one).__name__}.{one._testMethodName}": one for one in found}


def _outcome(case: unittest.TestCase, seconds: float) -> tuple[str, str]:
    """Run a case; return its outcome and the last line that explains it."""
    result, ended = unittest.TestResult(), threading.Event()

    def watch() -> None:
        end = time.process_time() + seconds
        while not ended.wait(1):
            if time.process_time() > end:
                os.kill(os.getpid(), signal.SIGINT)
                end += seconds

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        case.run(result)
    except KeyboardInterrupt:
        return "too long", ""
    finally:
        ended.set()
    if result.skipped:
        return "skipped", result.skipped[0][1]
    texts = [text for _, text in (*result.errors, *result.failures)]
    return ("failed", texts[0]) if texts else ("passed", "")


def main() -> None:
    """Run cases, or list them."""
    logging.disable(logging.WARNING)
    initialize()
    path, seconds, *names = sys.argv[1:]
    cases = _loaded(Path(path))
    if not names:
        print(json.dumps([*cases]))
        return
    for name in names:
        print(json.dumps([name, *_outcome(cases[name], float(seconds))]), flush=True)


if __name__ == "__main__":
    main()
