"""What methods cost: multiply-accumulates and memory, counted."""
