"""Refusal of a model: a sentence with the rule, the value, and the user's line."""

from neuroncore_rtl.kernels.program.source import SourceLine

__all__ = ["Refused"]


class Refused(ValueError):
    """Something of a model that this machine or this front end does not have.

    Arguments:
        sentence: the rule, the value, and what would do instead.
        source: the user's line, if known.
    """

    def __init__(self, sentence: str, source: SourceLine | None = None):
        super().__init__(sentence if source is None else f"{sentence} ({source.user.file}:{source.user.number})")
        self.source = source
