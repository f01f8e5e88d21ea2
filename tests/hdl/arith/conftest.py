import pytest


@pytest.fixture
def vectors(tmp_path):
    def write(text):
        path = tmp_path / "vectors.txt"
        path.write_text(text)
        return path

    return write
