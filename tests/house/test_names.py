"""Unique names: few public names are exported by more than one module."""

import ast
from collections import defaultdict
from collections.abc import Mapping

from tests.house.tree import FOLDERS, ROOT, modules_in

MOST = 30
"""Largest number of names exported by several modules."""

PROTOCOL = {"TEST": "tb/tests/", "TESTS": "tb/tests/", "CALLS": "frontends/nki/dialects/"}
"""Names that every module of a folder may export, because one reader looks them up."""


def exported(source: str) -> list[str]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return ast.literal_eval(node.value)
    return []


def things(name: str, modules: set[str]) -> int:
    """Return the number of distinct things with a name.

    A thing is a class, function or constant. A thing of hdl/ and its counterparts of the same name in golden/,
    golden/timing/ and spec/ count as one thing; in spec/ only a class can be a counterpart.
    """
    count = len([module for module in modules if not module.startswith(PROTOCOL.get(name, "-"))])
    if not any(module.startswith("hdl/") for module in modules):
        return count
    places = {"golden/timing" if module.startswith("golden/timing/") else module.split("/")[0] for module in modules}
    is_class = name[0].isupper() and not name.isupper()
    return count - len(places & {"golden", "golden/timing", *(["spec"] if is_class else [])})


def shared_names(sources: Mapping[str, str]) -> dict[str, set[str]]:
    found = defaultdict(set)
    for file, source in sources.items():
        for name in exported(source):
            found[name].add(file)
    return {name: modules for name, modules in found.items() if things(name, modules) > 1}


def test_few_names_are_of_more_than_one_thing():
    files = {file.relative_to(ROOT).as_posix(): file for file in modules_in(*FOLDERS) if file.name != "__init__.py"}
    files = {name: file for name, file in files.items() if not name.startswith("frontends/nki/examples/")}
    found = shared_names({name: file.read_text() for name, file in files.items()})
    lines = [f"{name}: {', '.join(sorted(modules))}" for name, modules in sorted(found.items())]
    print(f"{len(found)} names of more than one thing:", *lines, sep="\n")
    assert len(found) <= MOST


def test_a_name_of_two_things_is_found():
    pair = '__all__ = ["Checker", "run"]'
    assert set(shared_names({"run/a.py": pair, "tb/b.py": '__all__ = ["Checker", "walk"]'})) == {"Checker"}
    assert set(shared_names({"hdl/a.py": pair, "hdl/b.py": pair})) == {"Checker", "run"}
    assert set(shared_names({"hdl/a.py": pair, "golden/b.py": pair, "golden/timing/c.py": pair})) == set()
    assert set(shared_names({"hdl/a.py": pair, "golden/b.py": pair, "golden/c.py": pair})) == {"Checker", "run"}
    assert set(shared_names({"hdl/a.py": pair, "spec/b.py": pair})) == {"run"}
    protocol = '__all__ = ["TEST"]'
    assert set(shared_names({"tb/tests/a.py": protocol, "tb/tests/b.py": protocol})) == set()
    assert set(shared_names({"tb/tests/a.py": protocol, "tb/a.py": protocol, "run/b.py": protocol})) == {"TEST"}
