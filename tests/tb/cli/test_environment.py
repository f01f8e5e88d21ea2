"""tb.cli.environment: packages that follow in the background, and installations after Ctrl-C."""

import pytest

from neuroncore_rtl.run.sim import packages
from neuroncore_rtl.tb.cli import environment


@pytest.fixture
def installation(monkeypatch, tmp_path):
    """Return an environment whose uv writes its arguments to `said`, and fails if the file `broken` exists."""
    directory = tmp_path / ".venv"
    (directory / "bin").mkdir(parents=True)
    (tmp_path / "requirements.lock").touch()
    for name in ("python", "uv"):
        program = directory / "bin" / name
        program.write_text(f'#!/bin/sh\n[ ! -e {tmp_path}/broken ] && echo "$@" >>{tmp_path}/said\n')
        program.chmod(0o755)
    monkeypatch.setattr(environment, "_settings_of", lambda pip: {})
    return directory


def words_of(installation):
    return (installation.parent / "said").read_text()


def test_packages_in_the_background_are_unfinished_until_they_are_whole(installation):
    lock, mark = installation.parent / "requirements.lock", installation / environment.UNFINISHED
    mark.write_text("1")
    (installation.parent / "broken").touch()
    with pytest.raises(environment.Unable, match=r"uv pip install .* failed, see above"):
        environment.add_later(installation, lock)
    assert mark.exists()
    (installation.parent / "broken").unlink()
    environment.add_later(installation, lock)
    assert not mark.exists() and "import prepare" in words_of(installation)
    environment.add_later(installation, lock)
    assert words_of(installation).count("--requirements") == 1


def test_background_has_the_mark_of_its_group(installation, monkeypatch):
    monkeypatch.setattr(packages.sys, "prefix", str(installation))
    assert packages._unfinished("compilers") == installation / environment.UNFINISHED
    started = []

    class Started:
        def __init__(self, command, **streams):
            assert (installation / environment.UNFINISHED).read_text() == ""
            started.append(command[-1])
            self.pid = 7

    monkeypatch.setattr(environment.subprocess, "Popen", Started)
    environment._start_later(installation, installation.parent / "requirements.lock")
    assert started == ["later"] and (installation / environment.UNFINISHED).read_text() == "7"


@pytest.mark.parametrize("interrupted", [False, True])
def test_complete_installs_again_what_was_interrupted(installation, interrupted):
    mark = installation / "installing-plots"
    if interrupted:
        mark.touch()
    environment.complete(installation, installation.parent / "requirements.lock")
    assert ("--reinstall" in words_of(installation)) == interrupted
    assert not mark.exists() and (installation / "all").exists()


def test_pip_is_that_of_this_python():
    wheel = environment._wheel_of_pip()
    assert wheel is not None and wheel.is_file() and wheel.name.startswith("pip-")
