"""A model and its training in figures: layers, work, memory of each method and of each step."""
