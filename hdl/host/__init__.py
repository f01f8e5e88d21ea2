"""Host interface of a core: control registers, AXI4-Lite, and complete AXI4 ports."""
