"""Every method by its name, so that methods compare in one place: same loop, same data, same cost.

``pmt.methods.trainer("mezo", layers="B2")`` makes a trainer with the options of the method;
:data:`METHODS` says what each one is and where it is from; ``docs/reference/methods.md`` shows
them in a table. :func:`register` adds one of your own.
"""

from pmt.methods.adaptation import Adaptation, AdaptationResult, adapt, open_run, resume_run
from pmt.methods.catalog import Method
from pmt.methods.registry import (
    METHODS,
    load_plugins,
    method,
    options_of,
    register,
    resumed_trainer,
    trainer,
)

__all__ = [
    "METHODS",
    "Adaptation",
    "AdaptationResult",
    "Method",
    "adapt",
    "load_plugins",
    "method",
    "open_run",
    "options_of",
    "register",
    "resume_run",
    "resumed_trainer",
    "trainer",
]
