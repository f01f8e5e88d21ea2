"""Generated pages of the site: the start page, the API reference, and copies of the files at the top of the tree.

README.md, CONTRIBUTING.md and CHANGELOG.md stay at the top of the tree. The site shows copies with links to the site's
own pages. A link to a file that is no page, such as `../examples/sweep.toml`, becomes plain text.
"""

import ast
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]

PACKAGE = "neuroncore_rtl"

ROOMS = {
    "run": "the runtime",
    "kernels": "programs and the kernel library",
    "frontends": "kernels of other interfaces",
    "spec": "parameters, number formats and instructions",
    "golden": "the bit-exact numpy model and the timing model",
    "hdl": "the hardware",
    "tb": "TESTs, stimulus, campaigns and proofs",
    "bench": "measurements",
}
"""Rooms in the order of the reference, and the content of each."""

COPIES = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
"""Files above docs/, and the page that each becomes."""

_FRONT_MATTER = "---\nsearch: { boost: 0.3 }\n---\n\n"
"""Head of a reference page: search lists explanations before docstrings that mention the same word."""

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s:#]+)(#[\w-]+)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages; MkDocs calls this when it has listed the folder."""
    made = {page: (ROOT / name).read_text() for name, page in COPIES.items()}
    made |= _reference()
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace the entry `api/` of the navigation by the reference's pages."""
    _expand(config.nav)
    return config


def _expand(entries: list) -> None:
    for entry in entries:
        for title, value in entry.items() if isinstance(entry, dict) else ():
            if value == "api/":
                entry[title] = sorted(_reference())
            elif isinstance(value, list):
                _expand(value)


def on_page_markdown(markdown: str, page, config: MkDocsConfig, files: Files) -> str:
    """Point links to pages of the site; MkDocs calls this for each page."""
    source = {page: name for name, page in COPIES.items()}.get(page.file.src_uri)
    folder = ROOT if source else (ROOT / "docs" / page.file.src_uri).parent
    here = posixpath.dirname(page.file.src_uri)

    def replace(found: re.Match) -> str:
        picture, text, path, anchor = found[1], found[2], found[3], found[4] or ""
        target = (folder / path).resolve()
        try:
            name = str(target.relative_to(ROOT))
        except ValueError:
            return found[0]
        uri = COPIES.get(name) or name.removeprefix("docs/")
        if files.get_file_from_path(uri):
            return f"{picture}[{text}]({posixpath.relpath(uri, here or '.')}{anchor})"
        return text if target.exists() else found[0]

    return _LINK.sub(replace, markdown)


def _reference() -> dict[str, str]:
    """Return the reference: a page for each folder of Python, with one section a module."""
    pages = {}
    for room, purpose in ROOMS.items():
        for folder in sorted({path.parent for path in (ROOT / room).rglob("*.py") if "__pycache__" not in path.parts}):
            modules = sorted(path for path in folder.glob("*.py") if _documented(path))
            if not modules or not (folder / "__init__.py").is_file():
                continue  # a folder of scripts is no package
            package = ".".join(folder.relative_to(ROOT).parts)
            name = f"{PACKAGE}.{package}"
            title = f"# {package}: {purpose} {{ #{name} }}" if package == room else f"# {package} {{ #{name} }}"
            options = f"members: {_defined(folder)}, show_root_heading: false, show_root_toc_entry: false"
            head = f"::: {name}\n    options: {{ {options} }}"
            parts = [f"::: {name}.{path.stem}" for path in modules if path.stem != "__init__"]
            pages[f"api/{package}.md"] = "\n\n".join([_FRONT_MATTER + title, head, *parts]) + "\n"
    return pages


def _defined(folder: Path) -> list[str]:
    """Return the public names that a package defines itself; imported names have their entries elsewhere."""
    names = []
    for node in ast.parse((folder / "__init__.py").read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def _documented(path: Path) -> bool:
    return path.stem == "__init__" or '"""' in path.read_text()
