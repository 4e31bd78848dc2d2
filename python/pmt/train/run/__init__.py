"""One run: its loop of phases and steps, its folder, and the state that it ends in."""
