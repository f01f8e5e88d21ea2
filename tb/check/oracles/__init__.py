"""Independent implementations that golden results are compared with."""
