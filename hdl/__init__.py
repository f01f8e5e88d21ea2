"""Hardware in Amaranth: cores, chips and their engines."""
