"""Commands of make and of `python -m neuroncore_rtl`."""
