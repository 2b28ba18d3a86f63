"""Results: the explanation, its file, and its forms for other programs."""

from eblime.results.indices import Interactions

__all__ = ["Interactions"]
