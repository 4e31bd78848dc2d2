"""Parts of ``make_bundled_model.py``: data, network, training, files and the model card."""
