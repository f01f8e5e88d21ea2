"""Refusal of a model: a sentence with the rule, the value, and the user's line."""

from collections.abc import Iterator
from contextlib import contextmanager

from neuroncore_rtl.kernels.library.functions.lanes import MissingUnit
from neuroncore_rtl.kernels.source import SourceLine

__all__ = ["Refused", "refusing_at"]


class Refused(ValueError):
    """Something of a model that this machine or this front end does not have.

    Arguments:
        sentence: the rule, the value, and what would do instead.
        source: the user's line, if known.
    """

    def __init__(self, sentence: str, source: SourceLine | None = None):
        super().__init__(sentence if source is None else f"{sentence} ({source.user.file}:{source.user.number})")
        self.source = source


@contextmanager
def refusing_at(source: SourceLine) -> Iterator[None]:
    """Give a refusal in the context the user's line, if it has none; a machine without a unit refuses, too."""
    try:
        yield
    except MissingUnit as error:
        raise Refused(error.rule, source) from None
    except Refused as refusal:
        if refusal.source is None:
            raise Refused(str(refusal), source) from None
        raise
