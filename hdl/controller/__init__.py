"""Controller: a RISC-V processor with local memory and timer."""
