"""The command line: `python -m neuroncore_rtl sim matmul --m 8`, or the same in make's words, `python -m
neuroncore_rtl.tb sim matmul M=8`.

Commands and their options are made from the records of `tb.cli.registry`, never typed here a second time.
"""

import errno
import signal
import sys
from collections.abc import Iterable

import click

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.report import shown
from neuroncore_rtl.run.settings import Command, Option, Settings, UsageError
from neuroncore_rtl.run.sim.doctor import MissingTool
from neuroncore_rtl.run.sim.paths import UnreadableFolder
from neuroncore_rtl.run.sim.simulation import BuildFailed, SimulationFailed
from neuroncore_rtl.run.sim.vectors import WrongChoice, lanes_choice
from neuroncore_rtl.tb.campaign.task import WorkersLost
from neuroncore_rtl.tb.cli import registry

__all__ = ["ALL_COMMANDS", "add_commands", "app", "main"]


class _Value(click.ParamType):
    """A value of an option of a bench, checked by the option's own rule."""

    def __init__(self, option: Option):
        self.option = option
        self.name = "integer" if option.type is int else "file" if option.type.__name__ == "Path" else "text"

    def convert(self, value, param, ctx):
        return self.option.parse(value) if isinstance(value, str) else value


class _Errors(click.Group):
    """A group whose commands end with a sentence, not a traceback, when the user or the machine is at fault."""

    def invoke(self, ctx: click.Context):
        try:
            return super().invoke(ctx)
        except (UsageError, WrongChoice) as error:
            refusal = click.ClickException(str(error))
            refusal.exit_code = 2
            raise refusal from error
        except (MissingTool, UnreadableFolder, BuildFailed, SimulationFailed, WorkersLost) as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
            where = error.filename or shown(SIM_BUILD)
            raise click.ClickException(f"{where} cannot be written: {error.strerror}") from error


_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
"""Errors of a disk that is full, or that is not for writing; any other is a mistake of this program."""


class _Tests(click.Group):
    """The group whose commands are the TESTs of the registry."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(registry.tests())

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        return _command(registry.command_named(name), _simulate)


class _Profiles(click.Group):
    """The group whose commands are the TESTs that have profiles."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return registry.profiled_tests()

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        return _command(registry.profile_named(name), _simulate)


class _Images(_Profiles):
    """The group whose commands are the TESTs that have an image: they are the same."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        return _command(registry.image_named(name), _write_image)


def _command(command: Command, run) -> click.Command:
    """Return the command-line form of a bench; `run` gets the bench and its settings, and returns an exit status."""

    def callback(assignments: Iterable[str], **given):
        values = {option.name: given[option.name.lower()] for option in command.options}
        chosen = {name: value for name, value in values.items() if value is not None}
        sys.exit(run(command, command.settings(assignments, **chosen)))

    options = [
        click.Option([f"--{option.name.lower().replace('_', '-')}"], type=_Value(option), help=option.describe())
        for option in command.options
    ]
    assignments = click.Argument(["assignments"], nargs=-1, metavar="[NAME=VALUE]...")
    words = {"help": command.summary, "short_help": command.summary}
    return click.Command(command.name, params=[*options, assignments], callback=callback, **words)


def _simulate(command: Command, settings: Settings) -> int:
    with lanes_choice(settings.values.get("LANES")):
        report = command.run(settings)
    report.show()
    click.echo(f"record: {shown(report.write())}")
    return report.exit_status


def _write_image(command: Command, settings: Settings) -> int:
    from neuroncore_rtl.tb.cli.image import export_image

    return export_image(command, settings)


@click.group(cls=_Errors, context_settings={"help_option_names": ["-h", "--help"]})
def app():
    """Simulate, export and measure the accelerator."""


@app.group(cls=_Tests)
def sim():
    """Run a TEST: real RTL in a simulator, compared bit for bit with the golden model."""


@app.group(cls=_Profiles)
def profile():
    """Run a TEST on the core, and write where its cycles went: a timeline, a listing, numbers and pictures."""


@app.group(cls=_Images)
def image():
    """Write what HBM holds before a TEST runs on the core, and what it must hold behind it, as files."""


@app.command()
def doctor():
    """Say what is installed, what is missing, and the command that installs it."""
    from neuroncore_rtl.run.sim.doctor import show_tools

    sys.exit(show_tools())


@app.command("help")
@click.argument("test", metavar="[TEST]", required=False)
def show_help(test: str | None):
    """List targets, TESTs and presets, or the variables of a TEST."""
    from neuroncore_rtl.tb.cli.overview import show

    show(test, ALL_COMMANDS)


@app.command()
@click.argument("test", metavar="TEST")
def waves(test: str):
    """Open the latest waveform of a TEST in GTKWave."""
    found = registry.command_named(test)
    from neuroncore_rtl.run.view.waves import open_waves

    sys.exit(open_waves(found))


ALL_COMMANDS: list[Command] = []
"""All that take variables but simulate no TEST."""


def add_commands(commands: Iterable[Command]) -> None:
    """Add commands to the command line."""
    for command in commands:
        ALL_COMMANDS.append(command)
        app.add_command(_command(command, lambda command, settings: command.run(settings)))


add_commands(registry.COMMANDS)


def main() -> None:
    """Run the command line; a termination signal ends the simulators that it started, too."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    app(prog_name="python -m neuroncore_rtl")
