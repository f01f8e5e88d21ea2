"""Sessions with a simulated board, bit for bit."""

import pytest

from neuroncore_rtl.run.harness.board.host_port import HostPort
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.isa import HEADER_BITS
from neuroncore_rtl.tb.cli import host
from neuroncore_rtl.tb.cli.registry import COMMANDS

[TEST] = [command for command in COMMANDS if command.name == "host"]


def test_memory(capsys):
    assert host.run_session(TEST.settings(["TEST=memory"])) == 0
    assert "PASSED" in capsys.readouterr().out


@pytest.mark.parametrize("port", ["/dev/none", "/dev/null", "other://board", ""])
def test_no_such_port(port):
    with pytest.raises(UsageError, match=f"PORT must be a serial port of this computer.*, not '{port}': "):
        host.run_session(TEST.settings(["TEST=memory", f"PORT={port}"]))


@pytest.mark.slow
@pytest.mark.parametrize("test", ["matmul", "digits"])
def test_on_the_core(capsys, test):
    assert host.run_session(TEST.settings([f"TEST={test}", "IMAGES=4"])) == 0
    out = capsys.readouterr().out
    assert "PASSED" in out and "bit-exact" in out


@pytest.mark.slow
def test_a_program_that_computes_something_else_is_noticed(capsys, monkeypatch):
    loaded = HostPort.run_image

    def run_image(port, image):
        data = bytearray(image.data)
        operand = next(place for place in range(HEADER_BITS // 8, len(data)) if data[place])
        data[operand + 1] ^= 0x40
        return loaded(port, image.__class__(**{**vars(image), "data": bytes(data)}))

    monkeypatch.setattr(HostPort, "run_image", run_image)
    assert host.run_session(TEST.settings(["TEST=matmul"])) == 1
    assert "results differ from the golden model" in capsys.readouterr().out
