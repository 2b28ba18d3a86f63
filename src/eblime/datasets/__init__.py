"""Example inputs and models: a photo with an ImageNet classifier, and ultrasonic scans."""

from eblime._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
