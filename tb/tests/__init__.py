"""TESTs of `make sim`."""
