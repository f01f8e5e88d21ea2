"""On-chip memories, their ports and arbiters, and AXI."""
