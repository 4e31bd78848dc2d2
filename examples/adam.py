"""Adam (Kingma, Ba 2015): each weight's step is its mean gradient over its root mean square."""

import numpy as np

import pmt


class Adam:
    def __init__(self, beta1=0.9, beta2=0.999, seed=1):
        self.betas, self.seed, self.moments, self.steps = (beta1, beta2), seed, {}, {}

    def __call__(self, layer, gradient, learning_rate):
        if layer.endswith(".bias"):  # whose steps are not those of weights
            return None
        steps = self.steps[layer] = self.steps.get(layer, 0) + 1
        powers = np.stack([gradient, gradient**2])
        betas = np.reshape(self.betas, (2,) + (1,) * gradient.ndim)
        moments = self.moments.get(layer, np.zeros_like(powers))
        self.moments[layer] = moments = betas * moments + (1 - betas) * powers
        mean, square = moments / (1 - betas**steps)
        wanted = learning_rate * mean / (np.sqrt(square) + 1e-30)
        random = np.random.default_rng([self.seed, steps, *layer.encode()])
        return -np.floor(wanted + random.random(gradient.shape)).astype(int)

    def state(self):
        return {**self.moments, **{f"steps of {layer}": n for layer, n in self.steps.items()}}

    def load_state(self, state):
        self.moments = {name: kept for name, kept in state.items() if np.ndim(kept)}
        self.steps = {layer: int(state[f"steps of {layer}"]) for layer in self.moments}


pmt.methods.register("adam", "the default with Adam", optimizer=Adam(), preparation="none")
