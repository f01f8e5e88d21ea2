"""A small transformer that learns a text character by character, and then writes: the text.

Shakespeare's sonnets 12 to 35, first printed in 1609 and in the public domain, with today's spelling
and without indents.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

__all__ = ["TEXT", "Text", "sonnets"]

TEXT = Path(__file__).with_name("sonnets.txt")


@dataclass(frozen=True)
class Text:
    """A text as numbers.

    Arguments:
        text: what it says.
    """

    text: str

    @cached_property
    def characters(self) -> str:
        """The different characters of the text in their order; the number of each is its place."""
        return "".join(sorted(set(self.text)))

    @cached_property
    def numbers(self) -> np.ndarray:
        """The text, int64 [characters]."""
        return self.encode(self.text)

    def encode(self, words: str) -> np.ndarray:
        """Return the numbers of characters, int64.

        Raises:
            ValueError: if the text does not have one of them; the message names it.
        """
        for place, character in enumerate(words):
            if character not in self.characters:
                raise ValueError(
                    f"characters must be of the text, {self.characters!r}, not {character!r} at place {place + 1}"
                )
        return np.array([self.characters.index(character) for character in words], np.int64)

    def decode(self, numbers: np.ndarray) -> str:
        """Return what numbers say."""
        return "".join(self.characters[number] for number in numbers)


def sonnets() -> Text:
    """Return the text that there is."""
    return Text(TEXT.read_text(encoding="ascii"))
