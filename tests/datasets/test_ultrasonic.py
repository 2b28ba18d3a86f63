"""The scans and the network of the package."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eblime.datasets import ultrasonic
from eblime.datasets.ultrasonic import sample_scans


def test_shipped_scans():
    """Three with a defect and one without, with masks of the defects."""
    images, defects = sample_scans()

    assert images.shape == defects.shape == (4, 128, 128)
    assert defects.any(axis=(1, 2)).tolist() == [True, True, True, False]


def test_shipped_network_equals_the_same_network_in_torch():
    """The same weights in torch's layers give the same probabilities."""
    torch = pytest.importorskip("torch")
    from studies.data.networks import scan_layers

    model, twin = ultrasonic.ultrasonic_network(), scan_layers()
    weights = [w for pair in zip(model.kernels, model.biases, strict=True) for w in pair]
    with torch.no_grad():
        for slot, values in zip(
            twin.parameters(), [*weights, model.head, model.head_bias], strict=True
        ):
            slot.copy_(torch.from_numpy(values))
        images, _ = sample_scans()
        batch = torch.from_numpy(images[:, None].astype(np.float32) / 255)
        expected = torch.softmax(twin(batch), dim=1).numpy()

    assert_allclose(model(images), expected, atol=1e-6)
    assert_allclose(model(np.tile(images, (9, 1, 1))), np.tile(expected, (9, 1)), atol=1e-6)
    assert model(images[:0]).shape == (0, 2)
    assert_array_equal(model(np.stack(3 * [images], axis=3)), model(images))  # from photos
    with pytest.raises(ValueError, match="grey images"):
        model(images[..., None])
