"""Make the virtual environment that everything else runs in; needs nothing but Python 3.11's standard library.

The Makefile calls `python3 -m neuroncore_rtl.tb.cli.environment .venv requirements.lock`, and with a third argument,
`.venv requirements-docs.lock docs`, to add the packages of an extra to an environment that exists. What is missing on
the machine is said first, all of it. Any number of processes may make the environment at once: one does, the others
wait for it. A mark written at the end tells a whole one from one that was interrupted, or made for another lock or
another Python."""

import fcntl
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from neuroncore_rtl.run.sim.doctor import TOOLS, MissingTool, require

__all__ = ["add", "make"]


class Unable(Exception):
    """The environment cannot be made; the message says which step failed and what to look at."""


def make(directory: Path, lock: Path) -> None:
    """Bring `directory` to the packages that `lock` lists, creating it anew if anything about it is different.

    Raises:
        MissingTool: if the machine lacks what the project needs; nothing has been installed then.
        Unable: if the environment cannot be created, or the packages not be fetched.
    """
    with open(lock, "rb") as pinned:
        fcntl.flock(pinned, fcntl.LOCK_EX)
        mark = directory / "complete"
        wanted = f"{sys.version}\n{hashlib.sha256(pinned.read()).hexdigest()}\n"
        if not mark.is_file() or mark.read_text() != wanted:
            require(*(tool.name for tool in TOOLS.values() if tool.required and tool.package))
            print(f"making {directory} with {sys.executable} (about 1.5 GB the first time)", file=sys.stderr)
            mark.unlink(missing_ok=True)
            _fill(directory, lock)
        mark.write_text(wanted)


def add(directory: Path, lock: Path, name: str) -> None:
    """Add the packages that `lock` lists to an environment, and write the mark `name` into it.

    Raises:
        Unable: if the packages cannot be fetched.
    """
    with open(lock, "rb") as pinned:
        fcntl.flock(pinned, fcntl.LOCK_EX)
        python, uv = str(directory / "bin" / "python"), str(directory / "bin" / "uv")
        os.environ.update(_settings_of([python, "-m", "pip"]))
        _run(uv, "pip", "install", "--quiet", "--python", python, "--requirements", str(lock))
        (directory / name).touch()


def _fill(directory: Path, lock: Path) -> None:
    """Create the environment; pip installs uv into it, and uv all else, in a fifth of the time that pip would take."""
    python, uv = str(directory / "bin" / "python"), str(directory / "bin" / "uv")
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    creator = "venv" if importlib.util.find_spec("ensurepip") else "virtualenv"
    _run(sys.executable, "-m", creator, "--clear", str(directory))
    _run(*pip, "install", "--quiet", next(line for line in lock.read_text().split() if line.startswith("uv==")))
    os.environ.update(_settings_of(pip))
    install = (uv, "pip", "install", "--python", python)
    # Else every command would compile again what it imports, which takes a second.
    compiled = ["--compile-bytecode"] if sys.dont_write_bytecode else []
    _run(*install, *quiet, *compiled, "--requirements", str(lock))
    _run(*install, "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(lock.resolve().parent))


def _settings_of(pip: list[str]) -> dict[str, str]:
    """Return what uv has to be told of pip's settings, of which it reads none: a mirror of PyPI, and whom to trust."""
    listed = subprocess.run([*pip, "config", "list"], stdout=subprocess.PIPE, text=True).stdout
    settings = dict(re.findall(r"^\S+?\.(index-url|cert)='(.*)'$", listed, re.MULTILINE))
    names = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}
    return {names[key]: value for key, value in settings.items() if names[key] not in os.environ}


def _run(*command: str) -> None:
    """Run one step; what it prints goes where ours goes."""
    if subprocess.run(command, stdout=sys.stderr).returncode:
        raise Unable(f"`{' '.join(command)}` failed, see above; packages come from PyPI: is it reachable from here?")


if __name__ == "__main__":
    try:
        directory, lock, *extra = sys.argv[1:]
        if extra:
            add(Path(directory), Path(lock), *extra)
        else:
            make(Path(directory), Path(lock))
    except (MissingTool, Unable) as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the next make starts again")
