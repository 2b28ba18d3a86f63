import numpy as np
import pytest
from numpy.testing import assert_allclose

from eblime.kernels import ExponentialKernel, as_kernel, uniform

MASKS = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]], float)


def test_default_is_limes_for_tables():
    """sqrt(exp(-d^2 / w^2)) with w = 0.75 sqrt(p) on the Euclidean distance."""
    distance = np.sqrt([0, 1, 3, 4])

    assert_allclose(as_kernel(None)(MASKS), np.sqrt(np.exp(-(distance**2) / (0.75**2 * 4))))


def test_cosine_is_limes_for_images():
    """Distance 1 - cosine to the mask of ones, 1 for the empty mask, width 0.25."""
    distance = 1 - np.array([1, np.sqrt(3 / 4), np.sqrt(1 / 4), 0])

    assert_allclose(as_kernel("cosine")(MASKS), np.sqrt(np.exp(-(distance**2) / 0.25**2)))


def test_hamming_is_the_share_hidden():
    """Width 0.5 on the share of hidden features."""
    share = np.array([0, 1, 3, 4]) / 4

    assert_allclose(as_kernel("hamming")(MASKS), np.exp(-(share**2) / (2 * 0.5**2)))


@pytest.mark.parametrize("distance", ["euclidean", "cosine", "hamming"])
def test_a_mask_weighs_less_the_more_it_hides(distance):
    """And the input itself has the weight 1."""
    weights = ExponentialKernel(distance=distance, width=0.8)(MASKS)

    assert weights[0] == 1
    assert (np.diff(weights) < 0).all()


def test_uniform_and_functions():
    """Equal weights, or any function of the masks."""
    assert_allclose(as_kernel("uniform")(MASKS), 1)
    assert as_kernel(uniform) is uniform


def test_kernels_are_refused_by_name():
    """Unknown names, bad widths, things that are not functions."""
    with pytest.raises(ValueError, match=r"must be one of .*'uniform', 'shapley'; got 'flat'"):
        as_kernel("flat")
    with pytest.raises(TypeError, match=r"`kernel` must be a name, an object"):
        as_kernel(3)
    with pytest.raises(TypeError, match=r"`kernel` must be a name, an object"):
        as_kernel(ExponentialKernel)
    with pytest.raises(ValueError, match=r"`width` must be finite and > 0; got -1"):
        ExponentialKernel(width=-1)
    with pytest.raises(ValueError, match=r"`distance` must be one of"):
        ExponentialKernel(distance="far")


def test_a_tiny_width_leaves_weight_to_the_input_alone():
    """Squares of large distances may overflow; the weight is zero."""
    assert ExponentialKernel(width=1e-200)(MASKS).tolist() == [1, 0, 0, 0]
