"""The core as a host and a board see it: control registers, AXI4-Lite, AXI4 with all of its signals."""
