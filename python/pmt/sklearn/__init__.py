"""Int8 networks in scikit-learn's pipelines and searches."""

from pmt.sklearn.classifier import PmtClassifier

__all__ = ["PmtClassifier"]
