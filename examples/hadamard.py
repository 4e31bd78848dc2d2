"""Hadamard directions: orthogonal to one another, queries see more of a gradient."""

import numpy as np

import pmt


class Hadamard:
    queries = 64

    def __call__(self, engine, images, labels, step):
        matrix = np.ones((1, 1), np.int8)
        while len(matrix) < self.queries:
            matrix = np.block([[matrix, matrix], [matrix, -matrix]])
        gradients = {}
        for layer in engine.layers:
            shape, random = engine.weights(layer).shape, engine.random(layer, step)
            columns = (np.arange(np.prod(shape)) ^ random.integers(len(matrix))) % len(matrix)
            signs = matrix[:, columns] * random.choice(np.array([-4, 4], np.int8), len(columns))
            signs = signs[: self.queries].reshape(-1, *shape)
            losses = engine.losses(images, labels, layer, signs).mean(axis=1)
            gradients[layer] = np.tensordot(losses - losses.mean(), signs, 1)
        return gradients


if __name__ == "__main__":
    data = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "impulse_noise", 5)
    valid = pmt.corruptions.corrupt(pmt.datasets.bundled("test"), "impulse_noise", 5, seed=1)
    options = {"layers": "B2,head", "epochs": 1, "preparation": "none", "learning_rate": 1.0}
    trainer = pmt.ZOTrainer(estimator=Hadamard(), **options)
    result = trainer.fit(pmt.load("fashion_mnist_dscnn"), data, valid=valid)
    print(f"{result.before['valid_accuracy']:.3f} -> {result.epochs[-1]['valid_accuracy']:.3f}")
