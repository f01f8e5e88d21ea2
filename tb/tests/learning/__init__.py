"""TESTs that train networks."""
