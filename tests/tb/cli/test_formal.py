"""`make formal`: variables, output and exit status."""

import re

import pytest

from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.cli import formal
from neuroncore_rtl.tb.cli.registry import COMMANDS
from tests.tb.proofs.mutants import change

(COMMAND,) = (command for command in COMMANDS if command.name == "formal")


@pytest.mark.parametrize(
    "words, message",
    [
        (["UNIT=riscv"], "RISCV_FORMAL must be given with UNIT=riscv"),
        (["UNIT=axi", "RISCV_FORMAL=there"], "RISCV_FORMAL must be given with UNIT=riscv"),
        (["RISCV_FORMAL=there"], "RISCV_FORMAL must be given with UNIT=riscv"),
        (["UNIT=riscv", "RISCV_FORMAL=there"], "RISCV_FORMAL must be a checkout of riscv-formal"),
        (["ONLY=nothing of it"], "ONLY must be in the name of a proof, not 'nothing of it'"),
    ],
)
def test_refused(words, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        COMMAND.run(COMMAND.settings(words))


@pytest.mark.parametrize("broken", [False, True])
def test_proof_decides(broken, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(formal, "RESULTS", tmp_path)
    if broken:
        change(monkeypatch, RoundRobin.elaborate, "m.d.sync += behind", "m.d.comb += Signal(3)")
    status = COMMAND.run(COMMAND.settings(["UNIT=arbiters", "ONLY=round robin of 2"]))
    shown = capsys.readouterr().out
    assert (status, "FAILS" in shown, "Assert failed" in shown) == (broken, broken, broken)
    assert f"1 proofs, {int(broken)} failed" in shown
    assert (tmp_path / "formal-arbiters.json").is_file()
