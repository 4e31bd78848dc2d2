"""What a model takes on a board: memory, instructions, time; on top of costs and export."""
