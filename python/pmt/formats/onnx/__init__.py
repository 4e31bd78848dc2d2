"""ONNX: importers and exporter."""
