"""Numbers that JAX holds as pointers to objects of Python."""

from itertools import count
from typing import Any

__all__ = ["HANDLES", "Failure"]


class Handles:
    """Objects by their numbers."""

    def __init__(self):
        self._objects: dict[int, Any] = {}
        self._lasting: dict[int, int] = {}
        self._numbers = count(16, 16)

    def new(self, one: Any) -> int:
        """Return a number for an object, which lasts until `free`."""
        number = next(self._numbers)
        self._objects[number] = one
        return number

    def of(self, one: Any) -> int:
        """Return the number of an object that lasts as long as the process."""
        if id(one) not in self._lasting:
            self._lasting[id(one)] = self.new(one)
        return self._lasting[id(one)]

    def __getitem__(self, number: int) -> Any:
        return self._objects[number]

    def free(self, number: int | None) -> Any:
        """Forget an object; return it, or None for an unknown number."""
        return self._objects.pop(number or 0, None)


HANDLES = Handles()


class Failure(Exception):
    """An error with the code that JAX prints before the sentence."""

    CANCELLED, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL = 1, 3, 8, 9, 12, 13

    def __init__(self, message: str, code: int = INTERNAL):
        super().__init__(message)
        self.message, self.code = message, code
