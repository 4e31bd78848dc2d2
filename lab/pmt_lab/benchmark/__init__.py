"""Speed of the engine on this machine: forwards, layers, training steps, and other engines."""
