"""Docstrings as the API pages show them: names in backticks become links, ports a list.

A docstring says `Walk`, `golden.timing.calendar.Walk` or `Config.rows`; the source stays readable, and every name that
resolves is linked. A dotted name that begins with a room and does not resolve is an error of the strict build.
"""

import logging
import re
import textwrap
from collections.abc import Iterator

import griffe

__all__ = ["Crossrefs"]

PACKAGE = "neuroncore_rtl"

_log = logging.getLogger("mkdocs.plugins.crossrefs")

_PORTS = re.compile(r"^Ports:\n((?:(?:    .*)?\n?)*)", re.MULTILINE)

_NAME = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?`(?!`)")


class Crossrefs(griffe.Extension):
    """Rewrites the docstrings of the package after Griffe has loaded it."""

    def on_package(self, *, pkg: griffe.Module, **kwargs) -> None:
        """Link the names in all docstrings of a package."""
        for thing in _members(pkg):
            if thing.docstring:
                text = _PORTS.sub(_port_list, thing.docstring.value)
                thing.docstring.value = _NAME.sub(lambda found, at=thing: _link(pkg, at, found), text)


def _members(thing: griffe.Object) -> Iterator[griffe.Object]:
    yield thing
    for member in thing.members.values():
        if not member.is_alias:
            yield from _members(member)


def _port_list(found: re.Match) -> str:
    """Return the section of ports as a list; an entry begins where the indentation is least."""
    lines = textwrap.dedent(found[1]).strip("\n").split("\n")
    entries = [re.sub(r"^([\w, .\[\]]+):", r"- **\1**:", line) if line[:1].strip() else line for line in lines]
    return "**Ports:**\n\n" + "\n".join(entries) + "\n\n"


def _link(package: griffe.Module, thing: griffe.Object, found: re.Match) -> str:
    """Return a name as a link if it is defined in the docstring's scope or below the package, otherwise as it is."""
    name = found[1]
    for path in _candidates(thing, name):
        try:
            target = package[path.removeprefix(f"{PACKAGE}.")]
            target = target.final_target if target.is_alias else target
            while not target.docstring and not target.is_module and target.parent:
                target = target.parent  # a member without a docstring has no entry
            canonical = target.canonical_path
        except (KeyError, griffe.AliasResolutionError, griffe.CyclicAliasError):
            continue
        if not _has_entry(package, canonical) or canonical == thing.path:
            break
        return f"[{found[0]}][{canonical}]"
    else:
        if "." in name and name.split(".")[0] in package.members:
            _log.warning("%s: %s names nothing", thing.path, name)
    return found[0]


def _has_entry(package: griffe.Module, path: str) -> bool:
    """Return whether the reference has an entry: public names of the package's rooms have one."""
    top, _, rest = path.partition(".")
    names = rest.split(".")
    in_room = top == PACKAGE and names[0] in package.members and package.members[names[0]].is_module
    return in_room and not any(name.startswith("_") for name in names)


def _candidates(thing: griffe.Object, name: str) -> Iterator[str]:
    """Yield the paths that a name can have: members of the object and of its scopes, innermost first, then rooms."""
    scope: griffe.Object | None = thing
    while scope is not None and scope.path != PACKAGE:
        yield f"{scope.path}.{name}"
        scope = scope.parent
    yield name
