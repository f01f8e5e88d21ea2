"""Command line, generated from `tb.cli.registry`: `python -m neuroncore_rtl sim matmul --m 8`, or `... M=8`."""

import errno
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click

from neuroncore_rtl import IN_CLONE, SIM_BUILD
from neuroncore_rtl.run.monitor import Ongoing, watched
from neuroncore_rtl.run.page.parts import collect_parts
from neuroncore_rtl.run.settings import Command, Settings, UsageError
from neuroncore_rtl.run.shell import PLAIN_WIDTH, display_path, shell_command, terminal
from neuroncore_rtl.run.sim.doctor import MissingTool
from neuroncore_rtl.run.sim.paths import UnreadableFolder
from neuroncore_rtl.run.sim.simulation import BuildFailed, SimulationFailed
from neuroncore_rtl.run.sim.vectors import WrongChoice, lanes_choice, threads_choice
from neuroncore_rtl.tb.campaign.task import WorkersLost
from neuroncore_rtl.tb.cli import registry
from neuroncore_rtl.tb.cli.overview import MODULES, command_help, print_overview
from neuroncore_rtl.tb.cli.page import open_page, opened, split_open, write_run_page

__all__ = ["ALL_COMMANDS", "add_commands", "app", "main"]


class _Errors(click.Group):
    def invoke(self, ctx: click.Context):
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _Interrupted from error
        except (UsageError, WrongChoice) as error:
            refusal = click.ClickException(str(error))
            refusal.exit_code = 2
            raise refusal from error
        except (MissingTool, UnreadableFolder, BuildFailed, SimulationFailed, WorkersLost) as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
            where = error.filename or display_path(SIM_BUILD)
            raise click.ClickException(f"{where} cannot be written: {error.strerror}") from error


_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
"""Errors of writing to a disk; any other OSError is a bug of this program."""


class _Tests(click.Group):
    """Group with a command per TEST: `names` lists them, `find` returns one, and `run` returns its exit status."""

    def __init__(self, *arguments, names: Callable, find: Callable, run: Callable, **options):
        super().__init__(*arguments, **options)
        self._names, self._find, self._run = names, find, run

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._names())

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        return _command(self._find(name), self._run)

    def resolve_command(self, ctx: click.Context, args: list[str]):
        # make passes an empty TEST, and every other variable after it.
        for word in args[1:] if args[:1] == [""] else ():
            if word.lower().startswith("test="):
                raise UsageError(f"TEST must be in capitals, TEST={word[5:]}, not {word!r}")
        return super().resolve_command(ctx, args)


def _command(command: Command, run) -> click.Command:
    def callback(assignments: Iterable[str], **given):
        words = [f"{one.name}={text}" for one in command.options for text in given[one.name.lower()]]
        sys.exit(run(command, command.settings([*words, *assignments])))

    options = [
        click.Option(
            [f"--{one.name.lower().replace('_', '-')}"], metavar=_METAVARS[one.type], multiple=True,
            help=replace(one, default=command.given.get(one.name, one.default)).describe(),
        )
        for one in command.options
    ]  # fmt: skip
    assignments = click.Argument(["assignments"], nargs=-1, metavar="[NAME=VALUE]...")
    words = {"help": command.summary, "short_help": command.summary}
    return click.Command(command.name, params=[*options, assignments], callback=callback, **words)


_METAVARS = {int: "INTEGER", str: "TEXT", Path: "FILE"}


def _simulate(command: Command, settings: Settings) -> int:
    own, opens = split_open(settings)
    choices = lanes_choice(own.values.get("LANES")), threads_choice(own.values.get("THREADS"))
    with choices[0], choices[1] as used, collect_parts() as parts, watched(Ongoing(command.name)):
        report = command.run(own)
    if used:
        place = "rows" if max(used) > 1 else "details"  # one thread is only in the record
        report = replace(report, **{place: {**getattr(report, place), "threads": max(used)}})
    report.show()
    record = report.write()
    page = write_run_page(command, own, report, parts, record)
    click.echo(f"report: {display_path(page)}\nrecord: {display_path(record)}")
    if opens:
        open_page(page)
    return report.exit_status


def _write_image(command: Command, settings: Settings) -> int:
    from neuroncore_rtl.tb.cli.export import export_image

    return export_image(command, settings)


@click.group(cls=_Errors, context_settings={"help_option_names": ["-h", "--help"]})
def app():
    """Simulate, export and measure the accelerator."""


@app.group(cls=_Tests, names=MODULES.keys, find=opened(registry.command_named), run=_simulate)
def sim():
    """Run a TEST: RTL in a simulator, compared bit for bit with the golden model."""


@app.group(cls=_Tests, names=registry.profiled_tests, find=opened(registry.profile_named), run=_simulate)
def profile():
    """Run a TEST on the core and write its profile: a timeline, a listing, numbers and plots."""


@app.group(cls=_Tests, names=registry.profiled_tests, find=registry.image_named, run=_write_image)
def image():
    """Write the contents of HBM before a TEST runs on the core and the expected contents afterwards."""


@app.command()
def doctor():
    """List installed and missing tools and packages with the commands that install them."""
    from neuroncore_rtl.run.sim.doctor import show_tools
    from neuroncore_rtl.run.sim.packages import group_table, require_packages

    with suppress(MissingTool):  # listed as missing
        require_packages("compilers")
    sys.exit(show_tools(group_table()))


@app.command("help")
@click.argument("test", metavar="[TEST]", required=False)
@click.argument("words", metavar="[ALL=1]", nargs=-1)
def show_help(test: str | None, words: tuple[str, ...]):
    """List targets, TESTs and presets, or the variables of a TEST or a target; ALL=1 lists every parameter."""
    if wrong := [word for word in words if word not in ("ALL=0", "ALL=1")]:
        raise UsageError(f"a variable of help must be ALL=0 or ALL=1, not {wrong[0]!r}")
    if test is None:
        summaries = {name: command.get_short_help_str(PLAIN_WIDTH) for name, command in app.commands.items()}
        return print_overview(None if IN_CLONE else summaries)
    command = next((one for one in ALL_COMMANDS if one.name == test), None)
    line = shell_command(test) if command else shell_command("sim", test)
    found = command or opened(registry.command_named)(test)
    click.echo(command_help(found, line, terminal().width, words[-1:] == ("ALL=1",)), nl=False)


@app.command("parallel_compile", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--workers", default=2, type=click.IntRange(1, 256), help="parallel processes (default 2)")
def parallel_compile(script: str, arguments: tuple[str, ...], workers: int):
    """Compile what a Python script runs with `jit`, without running it, in parallel, into the cache of its runs."""
    from neuroncore_rtl.run.sim.packages import require_packages

    require_packages("jax")
    from neuroncore_rtl.tb.cli.parallel_compile import compile_script

    sys.exit(compile_script(script, arguments, workers))


@app.command()
@click.argument("test", metavar="TEST")
@click.argument("assignments", metavar="[NAME=VALUE]...", nargs=-1)
def waves(test: str, assignments: tuple[str, ...]):
    """Open the latest waveform of a TEST in GTKWave; without one, or with variables, run the TEST first."""
    found = registry.command_named(test)
    from neuroncore_rtl.tb.cli.waves import open_waves

    sys.exit(open_waves(found, assignments))


ALL_COMMANDS: list[Command] = []


def add_commands(commands: Iterable[Command]) -> None:
    """Add commands to the command line."""
    for command in commands:
        ALL_COMMANDS.append(command)
        app.add_command(_command(command, lambda command, settings: command.run(settings)))


add_commands(registry.COMMANDS)


class _Interrupted(BaseException):
    """Ctrl-C, hidden from click, which reports it as `Aborted!` with status 1."""


def main() -> None:
    """Run the command line; a termination signal also ends the simulators that it started."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        app(prog_name="python -m neuroncore_rtl")
    except _Interrupted:
        raise KeyboardInterrupt from None
