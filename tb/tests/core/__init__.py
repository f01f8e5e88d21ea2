"""TESTs of whole cores, ports and the controller."""
