"""Training by back-propagation: the baselines with exact gradients."""

from dataclasses import replace
from typing import Any

from pmt.baselines.backprop.cost import backward_work
from pmt.baselines.backprop.options import PRESETS, BackpropOptions, Preset
from pmt.baselines.backprop.options import preset as _preset
from pmt.baselines.backprop.scheme import UpdateScheme
from pmt.model import Model
from pmt.train.costs.work import Cost
from pmt.train.stepper import Stepper
from pmt.train.trainer import Trainer


class BackpropTrainer(Trainer):
    """Trains layers of an int8 model by back-propagation, through torch.

    Parameters
    ----------
    options : BackpropOptions, optional
        All options; by default the preset's.
    preset : str
        Preset where ``options`` is not given: a name of :data:`pmt.baselines.backprop.PRESETS`.
    threads : int
        Torch's threads; 0 leaves them as torch has them, but takes one in a worker of a process
        pool. Gradients are float32 sums: the same bytes come out on the same machine with the same
        torch and as many threads.
    **changes
        Options that differ, see :class:`pmt.backprop.BackpropOptions`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or outside its range.

    Examples
    --------
    >>> import pmt
    >>> model = pmt.load("fashion_mnist_dscnn")
    >>> data = pmt.datasets.bundled("train").take(200)
    >>> trainer = pmt.backprop.BackpropTrainer(layers="head", epochs=1)
    >>> trainer.fit(model, data, progress=False).epochs[0]["macs"]
    312544000
    """

    name = "backprop"
    options: BackpropOptions
    options_class: type[BackpropOptions] = BackpropOptions

    def __init__(
        self,
        options: BackpropOptions | None = None,
        *,
        preset: Preset = "bp_int8",
        threads: int = 0,
        **changes: Any,
    ) -> None:
        base = options if options is not None else _preset(preset)
        super().__init__(base, threads=threads, **changes)

    def presets(self) -> dict[str, Any]:
        """Return the options of every preset."""
        return {name: _preset(name) for name in ("bp_int8", *PRESETS)}

    def scheme(self, model: Model) -> UpdateScheme:
        """Return the scheme of a run on ``model``: the layers that it trains."""
        whole = UpdateScheme.whole(model.select_layers(self.options.layers), model)
        return UpdateScheme(
            tuple(
                replace(
                    layer,
                    channels=layer.channels if self.options.train_weights else 0,
                    bias=self.options.train_bias,
                )
                for layer in whole.layers
            )
        )

    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Count one step's work: the forward pass, and gradients by inputs and by weights.

        Parameters
        ----------
        model : Model
            The model to train.
        samples : int, optional
            Batch size; the options' by default.

        Returns
        -------
        Cost
            ``forwards`` is 0, no perturbed one is run. See
            :func:`pmt.baselines.backprop.cost.backward_work` for the formula.
        """
        return backward_work(model, self.scheme(model)).cost(self._images_of_step(samples))

    @property
    def trains_floats(self) -> bool:
        """Whether the float network is trained."""
        return self.options.arithmetic == "float32"

    def cross_fitting(self, model: Model) -> str:
        """Return the option cross_fit, or never where no head is solved for the float copies."""
        return "never" if self.options.has_float_copies else super().cross_fitting(model)

    def stepper(self, model: Model, samples: int) -> Stepper:
        """Return the stepper of a run on ``model``, with this many training samples.

        Raises
        ------
        ImportError
            If torch is missing.
        """
        from pmt.baselines.backprop.stepper import BackpropStepper

        return BackpropStepper(model, self.scheme(model), self.options, self.threads)
