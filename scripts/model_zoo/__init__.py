"""The parts of ``scripts/make_zoo_model.py``: networks, data, training, measuring."""
