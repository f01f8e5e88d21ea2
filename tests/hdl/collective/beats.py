import numpy as np

__all__ = ["beats_of_bytes", "bytes_of_beats"]


def beats_of_bytes(content: bytes, size: int, rng: np.random.Generator | None = None) -> list[int]:
    """Return bytes as beats of `size` bytes; the last beat is padded with random bytes, or with zeros without `rng`."""
    missing = -len(content) % size
    content = content + (rng.bytes(missing) if rng else bytes(missing))
    return [int.from_bytes(content[n : n + size], "little") for n in range(0, len(content), size)]


def bytes_of_beats(beats: list[int], size: int) -> bytes:
    return b"".join(beat.to_bytes(size, "little") for beat in beats)
