"""Cases of a soak: a random case, which depends only on the seed and an index, or the case in a file."""

import json
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.tests.soak.case import Case
from neuroncore_rtl.tb.tests.soak.collective_case import CollectiveCase
from neuroncore_rtl.tb.tests.soak.core_case import CoreCase
from neuroncore_rtl.tb.tests.soak.engine_cases import ElementwiseCase, TensorCase
from neuroncore_rtl.tb.tests.soak.instance_case import InstanceCase
from neuroncore_rtl.tb.tests.soak.riscv_case import RiscvCase

__all__ = ["PER_MACHINE", "SUBJECTS", "case_of", "drawn_case", "machine_number", "read_case", "subject_of"]

PER_MACHINE = 40  # a build takes as long as this many runs

SUBJECTS: dict[str, type[Case]] = {
    one.subject: one for one in (CoreCase, CollectiveCase, TensorCase, ElementwiseCase, RiscvCase, InstanceCase)
}

TURNS = ("core", "collective", "tensor", "elementwise", "riscv", "instance", "core", "core")
"""Kinds of the cases on consecutive machines; a machine runs PER_MACHINE cases."""


def machine_number(index: int) -> int:
    """Return the index of the machine on which a case runs."""
    return index // PER_MACHINE


def subject_of(index: int) -> str:
    """Return the kind of a case, which is the same for all cases of a machine."""
    return TURNS[machine_number(index) % len(TURNS)]


def drawn_case(seed: int, index: int) -> Case:
    """Return the case of an index, from 0."""
    kind = SUBJECTS[subject_of(index)]
    machine = kind.drawn_machine(np.random.default_rng((seed, machine_number(index), 0)))
    return kind.draw(np.random.default_rng((seed, index, 1)), machine)


def case_of(text: str) -> Case:
    """Return the case of a file's contents; ValueError, KeyError or TypeError if they are malformed."""
    found = json.loads(text)
    return SUBJECTS[found.pop("subject")].from_json(found)


def read_case(path: Path) -> Case:
    """Return the case of a file; UsageError if it holds none."""
    try:
        return case_of(path.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise UsageError(f"CASE must be a file that make soak has written; {path}: {error!r}") from None
