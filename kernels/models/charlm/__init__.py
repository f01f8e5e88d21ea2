"""Character-level transformer that learns a text and then continues it. This module provides the text.

The text is Shakespeare's sonnets 12 to 35, first printed in 1609 and in the public domain, with modern spelling and
without indents.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

__all__ = ["TEXT", "Text", "sonnets"]

TEXT = Path(__file__).with_name("sonnets.txt")


@dataclass(frozen=True)
class Text:
    """Text and its alphabet: each distinct character has a number."""

    text: str

    @cached_property
    def characters(self) -> str:
        """Distinct characters, sorted; the index of a character is its number."""
        return "".join(sorted(set(self.text)))

    @cached_property
    def numbers(self) -> np.ndarray:
        """Number of each character of the text, int64 [characters]."""
        return self.encode(self.text)

    def encode(self, words: str) -> np.ndarray:
        """Return the numbers of characters, int64; ValueError if a character does not occur in the text."""
        for place, character in enumerate(words):
            if character not in self.characters:
                raise ValueError(
                    f"characters must occur in the text, {self.characters!r}, not {character!r} at position {place + 1}"
                )
        return np.array([self.characters.index(character) for character in words], np.int64)

    def decode(self, numbers: np.ndarray) -> str:
        """Return the text that has the given character numbers."""
        return "".join(self.characters[number] for number in numbers)


def sonnets() -> Text:
    """Return the text of the sonnets in this folder."""
    return Text(TEXT.read_text(encoding="ascii"))
