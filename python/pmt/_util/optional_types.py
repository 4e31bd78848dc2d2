"""Types for annotations that are not imported at run time, under names that resolve there.

`typing.get_type_hints` evaluates annotations. A type of an optional package is `Any` to it, so that
neither `import pmt` nor a look at its hints imports pandas or matplotlib.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame
    from typing_extensions import Self, Unpack
else:
    Axes = DataFrame = Any
    if sys.version_info >= (3, 11):
        from typing import Self, Unpack
    else:
        Self = Any

        class Unpack:
            """Stands for the form that Python 3.10 lacks; its hint is the dict of the options."""

            def __class_getitem__(cls, options: type) -> type:
                return options


__all__ = ["Axes", "DataFrame", "Self", "Unpack"]
