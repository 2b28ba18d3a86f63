"""Segmentation functions of scikit-image with their parameters fixed."""

from collections.abc import Mapping
from typing import Any

from eblime._checks import check_choice
from eblime._types import Record
from eblime.compat.lime.utils.generic_utils import has_arg


class BaseWrapper:
    """A function and the parameters to call it with."""

    def __init__(self, target_fn: Any = None, **target_params: object) -> None:
        self.target_fn = target_fn
        self.target_params = target_params

    def _check_params(self, parameters: Any) -> None:
        target = self if self.target_fn is None else self.target_fn
        if not callable(target):
            raise AttributeError(f"`target_fn` must be callable; got a {type(target).__name__}.")
        if isinstance(parameters, str):
            raise TypeError("`parameters` must be a list or a dictionary; got a string.")
        for name in parameters:
            if not has_arg(target, name):
                raise ValueError(f"`{name}` is not a parameter of the function.")

    def set_params(self, **params: object) -> None:
        """Replace the parameters; unknown ones are refused."""
        self._check_params(params)
        self.target_params = params

    def filter_params(self, fn: object, override: Mapping[str, object] | None = None) -> Record:
        """The parameters that `fn` has, and those of `override`."""
        own = {name: value for name, value in self.target_params.items() if has_arg(fn, name)}
        return own | dict(override or {})


class SegmentationAlgorithm(BaseWrapper):
    """A segmentation function of scikit-image: "quickshift", "felzenszwalb" or "slic".

    As in lime, parameters that the installed scikit-image does not have are ignored;
    `random_seed` is one of them since scikit-image 0.21 (`rng` now).

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime.wrappers.scikit_image import SegmentationAlgorithm
    >>> image = np.linspace(0, 1, 16).round() * np.ones((16, 16))
    >>> len(np.unique(SegmentationAlgorithm("felzenszwalb", scale=1, sigma=0)(image)))
    2
    """

    def __init__(self, algo_type: str, **target_params: object) -> None:
        check_choice("algo_type", algo_type, ("quickshift", "felzenszwalb", "slic"))
        from skimage import segmentation

        BaseWrapper.__init__(self, getattr(segmentation, algo_type), **target_params)
        self.algo_type = algo_type
        self.target_params = self.filter_params(self.target_fn)

    def __call__(self, *args: object) -> Any:
        """The label of each pixel of an image."""
        return self.target_fn(args[0], **self.target_params)
