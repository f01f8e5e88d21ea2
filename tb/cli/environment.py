"""Creation of the virtual environment; needs only the standard library of Python 3.11.

The Makefile calls `python3 -m neuroncore_rtl.tb.cli.environment .venv requirements.lock`. Large packages that no run
needs at its start follow in the background: this module starts itself with a third argument, `later`, and
`run.sim.packages` waits for them before their first use. The third argument `all` adds every package of the lock file,
for tests and for work on this project. If several processes run at the same time, one installs and the others wait. A
mark, which is written at the end, shows that the environment can be used, and for which lock file and Python.
"""

import fcntl
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

from neuroncore_rtl.run.sim.doctor import TOOLS, MissingTool, require

__all__ = ["LATER", "UNFINISHED", "add_later", "complete", "make"]

LATER = ("numba", "ziglang")
"""Packages that are installed in the background: the group `compilers` of `run.sim.packages`."""

UNFINISHED = "installing-compilers"
"""File in the environment until they are whole. It contains the number of the process in the background."""


class Unable(Exception):
    """The environment cannot be created."""


def make(directory: Path, lock: Path) -> None:
    """Install the packages of a simulation in `directory`; create it again if the lock file or Python has changed.

    Raises:
        MissingTool: the machine lacks required tools; nothing has been installed.
        Unable: the environment is a link or cannot be created, or a package cannot be downloaded.
    """
    with open(lock, "rb") as pinned:
        fcntl.flock(pinned, fcntl.LOCK_EX)
        mark = directory / "complete"
        wanted = f"{sys.version}\n{hashlib.sha256(pinned.read()).hexdigest()}\n"
        if not mark.is_file() or mark.read_text() != wanted:
            if directory.is_symlink():
                raise Unable(f"{directory} must not be a link: the environment that it names would be emptied")
            require(*(tool.name for tool in TOOLS.values() if tool.required and tool.package))
            print(f"making {directory} with {sys.executable} (0.9 GB, half of it in the background)", file=sys.stderr)
            mark.unlink(missing_ok=True)
            _fill(directory, lock)
            _start_later(directory, lock)
        mark.write_text(wanted)


def add_later(directory: Path, lock: Path) -> None:
    """Install `LATER`, unless another process has done it since, and compile the C++ library of simulations.

    Raises:
        Unable: if the packages cannot be fetched, or the library cannot be compiled.
    """
    with open(lock, "rb") as pinned:
        fcntl.flock(pinned, fcntl.LOCK_EX)
        mark = directory / UNFINISHED
        if mark.exists():
            chosen = ("--constraints", str(lock), "--requirements", str(lock.with_name("pyproject.toml")))
            _run(*_uv(directory), "--quiet", *chosen)
            mark.unlink()
    # The first build links it; until then the core is elaborated, by one process.
    _run(str(directory / "bin" / "python"), "-c", "from neuroncore_rtl.run.sim.clang import prepare; prepare()")


def complete(directory: Path, lock: Path) -> None:
    """Add every package of `lock` to an environment, and write the mark `all` into it.

    Raises:
        Unable: if the packages cannot be fetched.
    """
    with open(lock, "rb") as pinned:
        fcntl.flock(pinned, fcntl.LOCK_EX)
        print("adding the packages of the tests and of the documentation (1.1 GB, about a minute)", file=sys.stderr)
        os.environ.update(_settings_of([str(directory / "bin" / "python"), "-m", "pip"]))
        unfinished = list(directory.glob("installing-*"))
        for mark in unfinished:
            mark.write_text("")
        again = ["--reinstall"] if unfinished else []  # an interrupted installation may look whole
        _run(*_uv(directory), "--quiet", *again, "--requirements", str(lock))
        for mark in unfinished:
            mark.unlink()
        (directory / "all").touch()


def _fill(directory: Path, lock: Path) -> None:
    """Create the environment; pip installs uv, and uv installs the rest in a fifth of pip's time."""
    pip = [str(directory / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    if wheel := _wheel_of_pip():
        # Python's own way, `ensurepip`, needs 3 s, because it compiles all of pip.
        _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(directory))
        zipfile.ZipFile(wheel).extractall(sysconfig.get_path("purelib", "venv", {"base": str(directory)}))
    else:
        creator = "venv" if importlib.util.find_spec("ensurepip") else "virtualenv"
        _run(sys.executable, "-m", creator, "--clear", str(directory))
    _run(*pip, "install", "--quiet", next(line for line in lock.read_text().split() if line.startswith("uv==")))
    os.environ.update(_settings_of(pip))
    # Otherwise every command would compile its imports again.
    compiled = ["--compile-bytecode"] if sys.dont_write_bytecode else []
    later = directory / "later.txt"
    later.write_text("\n".join(LATER))
    project = ("--editable", str(lock.resolve().parent))
    _run(*_uv(directory), *quiet, *compiled, "--constraints", str(lock), "--excludes", str(later), *project)


def _wheel_of_pip() -> Path | None:
    """Return the wheel of pip that belongs to this Python."""
    found = importlib.util.find_spec("ensurepip")
    folders = [sysconfig.get_config_var("WHEEL_PKG_DIR"), found and found.origin and Path(found.origin, "../_bundled")]
    wheels = (wheel for folder in folders if found and folder for wheel in Path(folder).resolve().glob("pip-*.whl"))
    return next(wheels, None)


def _start_later(directory: Path, lock: Path) -> None:
    """Start `add_later` in the background; Ctrl-C ends it as it ends the command that needed the environment."""
    mark = directory / UNFINISHED
    mark.touch()
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    command = [sys.executable, "-m", __spec__.name, str(directory), str(lock), "later"]
    mark.write_text(str(subprocess.Popen(command, **quiet).pid))


def _uv(directory: Path) -> tuple[str, ...]:
    return (str(directory / "bin" / "uv"), "pip", "install", "--python", str(directory / "bin" / "python"))


def _settings_of(pip: list[str]) -> dict[str, str]:
    """Return pip's settings for a mirror of PyPI and its certificate as variables of uv, which does not read pip's."""
    listed = subprocess.run([*pip, "config", "list"], stdout=subprocess.PIPE, text=True).stdout
    settings = dict(re.findall(r"^\S+?\.(index-url|cert)='(.*)'$", listed, re.MULTILINE))
    names = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}
    return {names[key]: value for key, value in settings.items() if names[key] not in os.environ}


def _run(*command: str) -> None:
    if subprocess.run(command, stdout=sys.stderr).returncode:
        raise Unable(f"`{' '.join(command)}` failed, see above; is PyPI, the source of the packages, reachable?")


if __name__ == "__main__":
    try:
        directory, lock, *extra = sys.argv[1:]
        step = {"": make, "later": add_later, "all": complete}["".join(extra)]
        step(Path(directory), Path(lock))
    except (MissingTool, Unable) as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; run make again")
