"""Hook `.ci/commit-msg`: accepts `room: imperative`, and names each violated rule."""

import re
import runpy
import subprocess
import sys

import pytest

from tests.house.tree import ROOT

HOOK = ROOT / ".ci" / "commit-msg"
SCISSORS = "# ------------------------ >8 ------------------------"

problems = runpy.run_path(str(HOOK))["problems"]


@pytest.mark.parametrize(
    "message",
    [
        "dma: check row numbers\n",
        "nki/masks, golden: process rows\n\nTwo loads of one row could overlap.\n",
        "docs: " + "x" * 66,
        "tests: seed the random draws",
        "# a comment\n\nci: focus on Debian\n# another\n\nWhy.\n",
        f"ci: run on push\n{SCISSORS}\ndiff --git a/x b/x\n",
        "Merge branch 'habits' into main",
        'Revert "dma: check row numbers, whose subject may be longer than the limit of 72"',
        "fixup! dma: check row numbers",
        "",
    ],
)
def test_good_messages_are_accepted(message):
    assert problems(message) == []


@pytest.mark.parametrize(
    "message, rule",
    [
        ("docs: " + "x" * 67, "subject must have at most 72 characters, not 73"),
        ("Check row numbers", "subject must have the form 'room: imperative' .* not 'Check row numbers'"),
        ("dma:check row numbers", "subject must have the form"),
        ("DMA: check row numbers", "subject must have the form"),
        ("dma: ", "subject must have the form"),
        ("dma: checked row numbers", "subject must continue with an imperative, such as 'add', not 'checked'"),
        ("dma: Fixes row numbers", "subject must continue with an imperative, such as 'add', not 'Fixes'"),
        ("dma: adding row numbers", "subject must continue with an imperative, such as 'add', not 'adding'"),
        ("dma: check row numbers.", "subject must not end with a period"),
        ("dma: check row numbers\nWhy.", "second line must be blank, not 'Why.'"),
    ],
)
def test_wrong_messages_are_refused(message, rule):
    [problem] = problems(message)
    assert re.match(rule, problem), problem


def test_all_violated_rules_are_named():
    assert len(problems("Checked everything that a subject may have, and more than fits into it, too.\nWhy.")) == 4


@pytest.mark.parametrize("message, code", [("dma: check rows\n", 0), ("dma: check rows\nWhy.\n", 1)])
def test_exit_code_and_output(tmp_path, message, code):
    (tmp_path / "message").write_text(message)
    finished = subprocess.run([sys.executable, HOOK, tmp_path / "message"], capture_output=True, text=True)
    assert (finished.returncode, finished.stderr.count("\n")) == (code, code)
