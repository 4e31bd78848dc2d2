"""``pmt.backprop`` is :mod:`pmt.baselines.backprop`."""

import sys
from typing import TYPE_CHECKING

from pmt.baselines import backprop

if TYPE_CHECKING:
    from pmt.baselines.backprop import *  # noqa: F403
else:
    sys.modules[__name__] = backprop
