"""Make the virtual environment that everything else runs in; needs nothing but Python 3.11's standard library.

`python3 tb/cli/environment.py .venv requirements.lock` is what the Makefile calls. Any number of processes may do so at
once: the first makes the environment, the others wait for it. With the word `lock` before them the arguments mean
the opposite: resolve the dependencies that pyproject.toml pins, and write the versions of everything into the lock.
"""

import fcntl
import hashlib
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["lock", "make"]

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


class Unable(Exception):
    """The environment cannot be made; the message says why and what would help."""


def make(directory, requirements):
    """Bring `directory` to the packages that `requirements` lists, creating it if need be."""
    with open(requirements, "rb") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another process to finish {directory}", file=sys.stderr)
            fcntl.flock(lock_file, fcntl.LOCK_EX)
        wanted = f"{sys.version}\n{hashlib.sha256(lock_file.read()).hexdigest()}\n"
        stamp = directory / "complete"
        if not stamp.is_file() or stamp.read_text() != wanted:
            stamp.unlink(missing_ok=True)
            install = _create(directory)
            _install(install, ["-r", str(requirements)], packages=_count(requirements), log=directory / "install.log")
        stamp.write_text(wanted)


def lock(requirements):
    """Resolve the dependencies of pyproject.toml in an environment of their own and write them to `requirements`."""
    import tomllib

    dependencies = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    with tempfile.TemporaryDirectory() as scratch:
        install = _create(Path(scratch))
        _install(install, dependencies, packages=len(dependencies), log=Path(scratch) / "install.log")
        freeze = [*install[: install.index("install")], "freeze"]
        frozen = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    requirements.write_text("# Written by `make lock` from the dependencies of pyproject.toml.\n" + frozen)


def _create(directory):
    """Create a virtual environment and return the command that installs into it."""
    python = str(directory / "bin" / "python")
    print(f"making {directory} with {sys.executable}", file=sys.stderr)
    into_it = [python, "-m", "pip", "install"]
    if importlib.util.find_spec("ensurepip"):
        _run([sys.executable, "-m", "venv", "--clear", str(directory)])
        return into_it
    if importlib.util.find_spec("virtualenv"):
        _run([sys.executable, "-m", "virtualenv", "--quiet", "--clear", str(directory)])
        return into_it
    if importlib.util.find_spec("pip") and importlib.util.find_spec("venv"):
        _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(directory)])
        return [sys.executable, "-m", "pip", "--python", python, "install"]
    raise Unable("python3-venv is missing; install it: apt install python3-venv (or, without root, virtualenv or pip)")


def _run(command):
    finished = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if finished.returncode:
        raise Unable(f"`{' '.join(command)}` failed:\n{finished.stdout}")


def _count(requirements):
    lines = (line.strip() for line in requirements.read_text().splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))


def _install(install, what, packages, log):
    """Install with pip, showing one line of progress for every package on a terminal and a few lines elsewhere."""
    command = [*install, "--disable-pip-version-check", "--no-input", "--progress-bar", "off", *what]
    terminal = sys.stderr.isatty()
    print(f"installing {packages} packages (a few minutes the first time)", file=sys.stderr)
    seen = 0
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in process.stdout:
            output.write(line)
            if line.startswith("Collecting "):
                seen += 1
                if terminal:
                    print(f"\r\033[K  {seen}/{packages} {line.split()[1]}", end="", file=sys.stderr, flush=True)
                elif seen % 10 == 0:
                    print(f"  {seen}/{packages}", file=sys.stderr)
            elif line.startswith("Installing "):
                print("\r\033[K  unpacking" if terminal else "  unpacking", file=sys.stderr)
        if process.wait():
            tail = "".join(log.read_text().splitlines(keepends=True)[-20:])
            raise Unable(f"pip could not install the packages:\n{tail}")


if __name__ == "__main__":
    try:
        if sys.argv[1] == "lock":
            lock(Path(sys.argv[2]))
        else:
            make(Path(sys.argv[1]), Path(sys.argv[2]))
    except Unable as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the next make starts again")
