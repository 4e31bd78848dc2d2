"""TensorFlow Lite: importer and exporters."""
