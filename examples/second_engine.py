"""Another engine behind the trainer: the losses are those of TensorFlow Lite Micro."""

import tempfile
from pathlib import Path

import numpy as np
from tflite_micro import runtime

import pmt


def micro_losses(model, images, labels):
    """Return the cross-entropy of each image by the interpreter's int8 output."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "network.tflite")
        model.save(file)
        interpreter = runtime.Interpreter.from_file(str(file))
    outputs = []
    for image in images:
        interpreter.set_input(image[None], 0)
        interpreter.invoke()
        outputs.append(interpreter.get_output(0).reshape(-1))
    (scale,) = interpreter.get_output_details(0)["quantization_parameters"]["scales"]
    logits = np.array(outputs) * scale  # the zero point would not change the softmax
    return np.logaddexp.reduce(logits, axis=1) - logits[np.arange(len(labels)), labels]


class MicroDirections:
    """Weight perturbation by an engine that gives nothing but losses of whole networks."""

    queries, mu = 8, 8

    def __call__(self, engine, images, labels, step):
        gradients = {}
        for layer in engine.layers:
            weights = engine.weights(layer)
            choices = np.array([-self.mu, self.mu], np.int8)
            signs = engine.random(layer, step).choice(choices, (self.queries, *weights.shape))
            losses = []
            for sign in signs:
                moved = np.clip(weights.astype(int) + sign, -127, 127).astype(np.int8)
                engine.set_weights(layer, moved)
                losses.append(micro_losses(engine.model, images, labels).mean())
            engine.set_weights(layer, weights)
            gradients[layer] = np.tensordot(losses - np.mean(losses), signs, 1)
        return gradients


if __name__ == "__main__":
    data = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "gaussian_noise", 5).take(60)
    options = {"layers": "head", "epochs": 1, "batch": 10, "keep_best": False}
    trainer = pmt.ZOTrainer(
        estimator=MicroDirections(), learning_rate=4.0, preparation="none", **options
    )
    model = pmt.load("fashion_mnist_dscnn")
    before = model.evaluate(data).loss
    trainer.fit(model, data, progress=False)
    print(f"loss {before:.3f} -> {model.evaluate(data).loss:.3f}")
