"""How long the target will compute."""

from __future__ import annotations

from pmt import _core
from pmt.export.task import Task

__all__ = ["task_macs"]


def task_macs(task: Task) -> int:
    """Count the multiply-accumulates of a task: clean forwards, queries, node gradients' forwards.

    Parameters
    ----------
    task : Task
        The task.

    Returns
    -------
    int
        Multiply-accumulates of all steps and of the inferences that are compared.
    """
    model, options = task.model.core, task.options
    macs = [int(op["macs"]) for op in model.ops()]
    layers = _core.Trainer(
        model, options, task.layers, task.batch, 1, task.settings
    ).layers()
    queried = [
        x["queries"] * sum(macs[x["op"] :]) for x in layers if x["estimator"] != "closed_form"
    ]
    if options.scope == _core.Scope.model_wise:
        queried = queried[:1]
    again = [sum(macs[: x["op"] + 1]) for x in layers if x["estimator"] != "weight_perturbation"]
    sample = sum(macs) + sum(queried) + sum(again)
    return len(task.steps) * task.batch * sample + task.inferences * sum(macs)
