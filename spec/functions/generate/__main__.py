"""Entry point of `python -m spec.functions.generate`."""

import sys

from neuroncore_rtl.spec.functions.generate import main

sys.exit(main(sys.argv[1:]))
