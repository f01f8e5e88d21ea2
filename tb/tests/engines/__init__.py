"""TESTs of single engines and of arithmetic units."""
