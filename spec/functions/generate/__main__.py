"""`python -m spec.functions.generate`."""

import sys

from spec.functions.generate import main

sys.exit(main(sys.argv[1:]))
