"""A custom optimizer: the rounding error is kept for the next step, and nothing is drawn."""

import numpy as np

import pmt


class ErrorFeedback:
    def __init__(self):
        self.left = {}

    def __call__(self, layer, gradient, learning_rate):
        size = np.sqrt(np.mean(gradient**2)) + 1e-30
        wanted = self.left.get(layer, 0.0) - learning_rate * gradient / size
        update = np.rint(wanted).astype(int)
        self.left[layer] = wanted - update
        return update

    def state(self):
        return self.left

    def load_state(self, state):
        self.left = dict(state)


model, data = pmt.load("fashion_mnist_dscnn"), pmt.datasets.bundled("train")
noisy = pmt.corruptions.corrupt(data, "impulse_noise", 5)
trainer = pmt.ZOTrainer(optimizer=ErrorFeedback(), layers="B2", epochs=2, preparation="none")
result = trainer.fit(model, noisy, out="runs/error_feedback")
print(f"loss {result.epochs[0]['train_loss']:.3f} -> {result.epochs[-1]['train_loss']:.3f}")
