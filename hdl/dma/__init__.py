"""DMA engine."""
