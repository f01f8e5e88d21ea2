"""Creation of the virtual environment; needs only the standard library of Python 3.11.

The Makefile calls `python3 -m neuroncore_rtl.tb.cli.environment .venv requirements.lock`. A third argument, `all`, then
adds every package of the lock file, for tests and for work on this project. If several processes run at the same time,
one installs and the others wait. A mark, which is written at the end, shows that the environment is complete, and for
which lock file and Python.
"""

import fcntl
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from neuroncore_rtl.run.sim.doctor import TOOLS, MissingTool, require

__all__ = ["complete", "make"]

LATER = "numba"
"""Package that only some runs need: `run.sim.packages` installs it before the first of them."""


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
            print(f"making {directory} with {sys.executable} (0.8 GB, about a minute)", file=sys.stderr)
            mark.unlink(missing_ok=True)
            _fill(directory, lock)
        mark.write_text(wanted)


def complete(directory: Path, lock: Path) -> None:
    """Add every package of `lock` to an environment, and write the mark `all` into it.

    Raises:
        Unable: if the packages cannot be fetched.
    """
    with open(lock, "rb") as pinned:
        fcntl.flock(pinned, fcntl.LOCK_EX)
        print("adding the packages of the tests and of the documentation (1.1 GB, about a minute)", file=sys.stderr)
        python, uv = str(directory / "bin" / "python"), str(directory / "bin" / "uv")
        os.environ.update(_settings_of([python, "-m", "pip"]))
        _run(uv, "pip", "install", "--quiet", "--python", python, "--requirements", str(lock))
        (directory / "all").touch()


def _fill(directory: Path, lock: Path) -> None:
    """Create the environment; pip installs uv, and uv installs the rest in a fifth of pip's time."""
    python, uv = str(directory / "bin" / "python"), str(directory / "bin" / "uv")
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    creator = "venv" if importlib.util.find_spec("ensurepip") else "virtualenv"
    _run(sys.executable, "-m", creator, "--clear", str(directory))
    _run(*pip, "install", "--quiet", next(line for line in lock.read_text().split() if line.startswith("uv==")))
    os.environ.update(_settings_of(pip))
    install = (uv, "pip", "install", "--python", python)
    # Otherwise every command would compile its imports again.
    compiled = ["--compile-bytecode"] if sys.dont_write_bytecode else []
    later = directory / "later.txt"
    later.write_text(f"{LATER}\n")
    project = ("--editable", str(lock.resolve().parent))
    _run(*install, *quiet, *compiled, "--constraints", str(lock), "--excludes", str(later), *project)


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
        step = complete if extra == ["all"] else make
        step(Path(directory), Path(lock))
    except (MissingTool, Unable) as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; run make again")
