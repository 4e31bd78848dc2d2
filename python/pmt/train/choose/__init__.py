"""Which block to train, chosen by trial runs."""
