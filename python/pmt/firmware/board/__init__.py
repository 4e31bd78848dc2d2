"""Memory and instructions that a model takes on a board."""
