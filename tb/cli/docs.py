"""`make docs`: builds the documentation site, or serves it on this computer."""

import os
import subprocess
import sys

from neuroncore_rtl import ROOT, SIM_BUILD
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.shell import display_path

__all__ = ["build_site"]


def build_site(settings: Settings) -> int:
    """Run MkDocs and return its exit status: every warning, such as a link to nothing, is an error."""
    # `--quiet` would silence the warnings before the strict build counts them.
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "serve" if settings.serve else "build"]
    status = subprocess.run(command, cwd=ROOT, env=environment).returncode
    if not status and not settings.serve:
        print(f"site: {display_path(SIM_BUILD / 'site' / 'index.html')}")
    return status
