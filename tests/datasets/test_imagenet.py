"""The names of ImageNet's classes, and the network that has them."""

import pytest

import eblime
from eblime.datasets import class_names, coffee, efficientnet_lite0


def test_names_are_all_different_and_in_the_order_of_the_outputs():
    """Some classes that everybody knows by number."""
    names = class_names()

    assert len(names) == len(set(names)) == 1000
    assert [names[k] for k in (0, 245, 937, 967, 999)] == [
        *("tench", "French bulldog", "broccoli", "espresso", "toilet tissue"),
    ]


def test_the_network_names_its_outputs():
    """The explanation of the README says what the photo shows, without `labels=`."""
    pytest.importorskip("efficientnet_lite_pytorch")
    model = efficientnet_lite0("cpu")
    e = eblime.ImageExplainer(model, n_masks=40, segmentation=("grid", {"rows": 3})).explain(
        coffee()
    )

    assert e.label == "espresso"
    assert model.module.config.id2label[968] == "cup"
