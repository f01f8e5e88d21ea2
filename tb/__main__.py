"""`python -m tb`: what stands behind the Makefile."""

from tb.cli import main

main()
