"""Memory, MACs and latency of every method."""
