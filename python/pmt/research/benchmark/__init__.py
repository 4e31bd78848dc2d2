"""How fast the engine is on this machine: forwards, layers, training steps, and other engines."""
