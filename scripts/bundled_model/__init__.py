"""The parts of ``make_bundled_model.py``: data, networks, training, heads and cards."""
