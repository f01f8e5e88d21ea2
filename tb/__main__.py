"""`python -m neuroncore_rtl.tb`: what stands behind the Makefile."""

from neuroncore_rtl.tb.cli.commands import main

main()
