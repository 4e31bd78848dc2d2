"""``pmt.backprop`` is :mod:`pmt.baselines.backprop`."""

import sys

from pmt.baselines import backprop

sys.modules[__name__] = backprop
