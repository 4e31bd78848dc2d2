"""Momentum: earlier gradients fade by a factor, and the sum of all is the step's direction."""

import numpy as np

import pmt


class Momentum:
    def __init__(self, factor=0.9, seed=1):
        self.factor, self.seed, self.sums, self.steps = factor, seed, {}, 0

    def __call__(self, layer, gradient, learning_rate):
        if layer.endswith(".bias"):  # whose steps are not those of weights
            return None
        total = self.factor * self.sums.get(layer, 0.0) + gradient
        self.sums[layer], self.steps = total, self.steps + 1
        wanted = learning_rate * total / (np.sqrt(np.mean(total**2)) + 1e-30)
        random = np.random.default_rng([self.seed, self.steps])
        return -np.floor(wanted + random.random(total.shape)).astype(int)

    def state(self):
        return {**self.sums, "steps": self.steps}

    def load_state(self, state):
        self.sums = {layer: sums for layer, sums in state.items() if layer != "steps"}
        self.steps = int(state["steps"])


method = {"preparation": "none", "learning_rate": 0.05}
pmt.methods.register("momentum", "the default with momentum", optimizer=Momentum(), **method)
