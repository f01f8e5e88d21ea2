"""Random programs of word copies on several queues, ordered by semaphores."""

import numpy as np

from neuroncore_rtl.spec.isa import Record, Update, Wait
from tests.oracles.copies import word_copy

__all__ = ["word_copies"]


def word_copies(
    rng: np.random.Generator, queues: range, length: int, *, words: int = 12, base: int = 0
) -> list[tuple[int, Record]]:
    counts, users, program = dict.fromkeys(queues, 0), {}, []
    for _ in range(length):
        source, target = (int(word) for word in rng.permutation(words)[:2])
        queue, awaited = int(rng.choice(queues)), {}
        for word in (source, target):
            for other, (count, wrote) in users.get(word, {}).items():
                if other != queue and (wrote or word == target):
                    awaited[other] = max(awaited.get(other, 0), count)
        counts[queue] += 1
        for word in (source, target):
            _, wrote = users.setdefault(word, {}).get(queue, (0, False))
            users[word][queue] = counts[queue], wrote or word == target
        waits = tuple(Wait(other, count) for other, count in awaited.items())
        instruction = word_copy(base + 4 * source, base + 4 * target)
        program.append((queue, Record(instruction=instruction, waits=waits, updates=(Update(queue),))))
    return program
