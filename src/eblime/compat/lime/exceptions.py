"""The error class of lime."""


class LimeError(ValueError):
    """A setting that no explanation can have."""
