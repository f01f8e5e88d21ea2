"""Vector engine: lanes with two ALUs, reductions, statistics and searches."""
