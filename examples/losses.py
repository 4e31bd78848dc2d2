"""Custom losses: hinge, ranking, Huber, smoothed labels, and 0-1, which has no gradient."""

import numpy as np

import pmt


def margins(logits, labels):
    """Return the other classes' logits less the label's; -inf for the label itself."""
    own = np.arange(logits.shape[2]) == labels[:, None]
    return np.where(own, -np.inf, logits - logits[:, own][:, :, None])


def hinge(logits, labels):
    return np.maximum(0.0, 1.0 + margins(logits, labels).max(axis=2))


def ranking(logits, labels):
    return np.logaddexp(0.0, margins(logits, labels)).sum(axis=2) / (logits.shape[2] - 1)


def huber(logits, labels, delta=1.0):
    distance = np.abs(logits - np.eye(logits.shape[2])[labels])
    inside = distance <= delta
    return np.where(inside, distance**2 / 2, delta * (distance - delta / 2)).mean(axis=2)


def smoothed(logits, labels, smoothing=0.1):
    target = (1 - smoothing) * np.eye(logits.shape[2])[labels] + smoothing / logits.shape[2]
    return np.logaddexp.reduce(logits, axis=2) - (target * logits).sum(axis=2)


def zero_one(logits, labels):
    return logits.argmax(axis=2) != labels


if __name__ == "__main__":
    train = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "impulse_noise", 5)
    test = pmt.corruptions.corrupt(pmt.datasets.bundled("test"), "impulse_noise", 5, seed=1)
    for loss in (hinge, ranking, smoothed, zero_one):
        model = pmt.load("fashion_mnist_dscnn")
        options = {"layers": "B1,head", "preparation": "none", "queries": 16, "mu_node": 8}
        trainer = pmt.ZOTrainer(loss=loss, epochs=1, head_rate=10.0, **options)
        before = model.evaluate(test).accuracy
        trainer.fit(model, train, progress=False)
        print(f"{loss.__name__} {before:.3f} -> {model.evaluate(test).accuracy:.3f}")
