"""A model and its training in figures: layers, work, memory of each method and of each step."""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names

if TYPE_CHECKING:
    from pmt.profiling import model_info, profile, step_memory
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["model_info", "profile", "step_memory"]
