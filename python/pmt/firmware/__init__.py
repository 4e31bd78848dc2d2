"""From a model to a board: export, memory, instructions, monitor."""
