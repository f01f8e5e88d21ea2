"""Views of a run: waveforms, timelines, profiles and diagrams."""
