"""Line budgets: Python lines of each folder and their limit (`[tool.neuroncore.budget]`).

`python -m tests.house.budget` prints the table and fails if a folder exceeds its limit; `make lint` runs it. Raise a
budget in the commit that needs the lines, and give the reason in its message.
"""

import sys
import tomllib

from tests.house.tree import ROOT, modules_in

__all__ = ["budgets", "lines_of", "over"]


def budgets() -> dict[str, int]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["neuroncore"]["budget"]


def lines_of(folder: str) -> int:
    return sum(len(file.read_text().splitlines()) for file in modules_in(folder))


def over(lines: dict[str, int], most: dict[str, int]) -> list[str]:
    rule = "{} must have at most {:,} lines, not {:,}: write less, or raise its budget and say why"
    return [rule.format(folder, most.get(folder, 0), n) for folder, n in lines.items() if n > most.get(folder, 0)]


def main() -> None:
    most = budgets()
    lines = {folder: lines_of(folder) for folder in most}
    for folder, count in lines.items():
        print(f"{folder:10} {count:7,} of {most[folder]:7,} lines")
    print(f"{'all':10} {sum(lines.values()):7,} of {sum(most.values()):7,} lines")
    sys.exit("\n".join(over(lines, most)) or None)


if __name__ == "__main__":
    main()
