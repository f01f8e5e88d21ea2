"""FPGA tools: synthesis, placement, routing and path estimates."""
