"""Vector files for the benches of single units."""

import pytest


@pytest.fixture
def vectors(tmp_path):
    """Write a vector file and return its path."""

    def write(text):
        path = tmp_path / "vectors.txt"
        path.write_text(text)
        return path

    return write
