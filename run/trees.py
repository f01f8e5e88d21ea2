"""Trees of arrays in dicts, lists and tuples, as JSON: their forms, without JAX.

The form of an array is "*", of None null, of a container a list of its kind and its parts.
"""

from collections.abc import Iterator
from typing import Any

from neuroncore_rtl.run.settings import UsageError

__all__ = ["flattened", "form_of", "unflattened"]

_SEQUENCES = {"tuple": tuple, "list": list}


def form_of(tree: Any, leaf: type) -> Any:
    """Return the form of a tree whose leaves are of a type; UsageError for other containers."""
    if type(tree) is leaf:
        return "*"
    if tree is None:
        return None
    if type(tree) is dict and all(type(key) in (str, int) for key in tree):
        return ["dict", [[key, form_of(tree[key], leaf)] for key in sorted(tree)]]
    for name, kind in _SEQUENCES.items():
        if type(tree) is kind:
            return [name, [form_of(one, leaf) for one in tree]]
    rule = "trees in a file must be of dicts with texts or integers as keys, lists, tuples and None"
    raise UsageError(f"{rule}, not {type(tree).__name__}")


def flattened(form: Any, tree: Any, path: str = "the arguments") -> Iterator[Any]:
    """Yield the arrays of a tree; UsageError if it has another form."""
    if form == "*":
        yield tree
    elif form is None:
        _check(tree is None, path, "None", tree)
    elif form[0] == "dict":
        keys = [key for key, _ in form[1]]
        _check(isinstance(tree, dict) and {*tree} == {*keys}, path, f"a dict of {keys}", tree)
        for key, part in form[1]:
            yield from flattened(part, tree[key], f"{path}[{key!r}]")
    else:
        kind, parts = form
        fits = isinstance(tree, _SEQUENCES[kind]) and len(tree) == len(parts)
        _check(fits, path, f"a {kind} of {len(parts)}", tree)
        for at, part in enumerate(parts):
            yield from flattened(part, tree[at], f"{path}[{at}]")


def unflattened(form: Any, arrays: Iterator[Any]) -> Any:
    """Return the tree of a form with the arrays in order."""
    if form == "*":
        return next(arrays)
    if form is None:
        return None
    if form[0] == "dict":
        return {key: unflattened(part, arrays) for key, part in form[1]}
    return _SEQUENCES[form[0]](unflattened(part, arrays) for part in form[1])


def _check(holds: bool, path: str, wanted: str, found: Any) -> None:
    if not holds:
        sized = f" of {[*found] if isinstance(found, dict) else len(found)}" if hasattr(found, "__len__") else ""
        raise UsageError(f"{path} must be {wanted}, as compiled, not {type(found).__name__}{sized}")
