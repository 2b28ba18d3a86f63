"""Where data come from, and what they are; with EBLIME_DATA the real ones."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from eblime.datasets import cache
from eblime.datasets.cache import find
from eblime.datasets.imagenet import coffee, cut_coarsely, photo_set, read_square

REAL = os.environ.get("EBLIME_DATA")
real = pytest.mark.skipif(not REAL, reason="EBLIME_DATA is not set")


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """No local data, an empty cache."""
    monkeypatch.delenv("EBLIME_DATA", raising=False)
    monkeypatch.setenv("EBLIME_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_files_are_fetched_checked_and_kept(empty):
    """From a URL once, and from the cache after that."""
    original = empty / "original.txt"
    original.write_bytes(b"data")
    digest = hashlib.sha256(b"data").hexdigest()
    path = find("a/b.txt", url=original.as_uri(), sha256=digest)
    original.unlink()

    assert path.read_bytes() == b"data"
    assert find("a/b.txt", url=original.as_uri(), sha256=digest) == path


def test_another_file_than_expected_is_refused(empty):
    """By its checksum, and nothing is kept."""
    original = empty / "original.txt"
    original.write_bytes(b"other")
    with pytest.raises(ValueError, match="SHA-256 must be"):
        find("a/b.txt", url=original.as_uri(), sha256="0" * 64)

    assert not (empty / "cache" / "a" / "b.txt").exists()


def test_without_a_network_the_way_out_is_told(empty):
    """Where to put the file."""
    with pytest.raises(ConnectionError, match="put the file at"):
        find("a/b.txt", url=(empty / "nothing").as_uri())
    with pytest.raises(FileNotFoundError, match="EBLIME_DATA"):
        find("a/b.txt", url=None)


def test_a_local_copy_comes_first(empty, monkeypatch):
    """EBLIME_DATA names a folder; one that is not there is refused."""
    (empty / "data").mkdir()
    (empty / "data" / "x.txt").write_text("here")
    monkeypatch.setenv("EBLIME_DATA", str(empty / "data"))
    assert find("x.txt", url=None) == empty / "data" / "x.txt"

    monkeypatch.setenv("EBLIME_DATA", str(empty / "gone"))
    with pytest.raises(FileNotFoundError, match="must name a folder"):
        cache.local_folder()


def test_coarse_superpixels_are_few():
    """At most 13, so that every mask can be asked about."""
    assert cut_coarsely(coffee()).max() < 13


@real
def test_tables_are_what_they_should_be():
    """Rows, columns and shares that the sources give."""
    from eblime.datasets.tabular import compas, forest, german

    credit, risk = german(), compas()

    assert credit.data.shape == (1000, 20)
    assert credit.target.mean() == 0.7
    assert not credit.data.isna().any().any()
    assert risk.data.shape == (6172, 7)
    assert forest(credit, trees=5).predict_proba(credit.data[:3]).shape == (3, 2)


@real
def test_photos_are_squares_of_known_classes():
    """The paper's four classes are there."""
    for name, count in (("french-bulldog", 40), ("broccoli", 40), ("corn", 1), ("scuba-diver", 1)):
        photos = photo_set(name)
        assert len(photos) == count
        assert read_square(photos[0].path).shape == (224, 224, 3)
    assert photo_set("french-bulldog")[0].target == 245


@real
def test_review_sentences_are_explained_by_their_words():
    """rt-polarity, TF-IDF and logistic regression: a word of praise speaks for praise."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    import eblime
    from eblime.datasets.text import rt_polarity

    texts, labels = rt_polarity()
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=4)).fit(texts, labels)
    e = eblime.TextExplainer(model).explain("a gorgeous film, but dull and boring", "praise")
    mean = dict(zip(e.features, e.posterior.mean, strict=True))

    assert len(texts) == len(labels) == 10_662
    assert mean["word 'gorgeous'"] > 0.05
    assert mean["word 'dull'"] < -0.05


@real
def test_drilled_holes_are_where_they_should_be():
    """The echo inside the box is brighter than the patch around it, for each of the eight."""
    if not (Path(REAL) / "ultrasonic" / "PlaneScan3D_PlexiAluFBH.mat").exists():
        pytest.skip("no ultrasonic scans in EBLIME_DATA")
    from eblime.datasets.drilled import drilled_patches

    found = drilled_patches()
    for hole in range(8):
        here = found.holes == hole
        inside = found.images[here][found.defects[here]].mean()
        outside = found.images[here][~found.defects[here]].mean()
        assert inside > outside + 20, hole
    assert np.sum(found.holes < 0) == np.sum(found.holes >= 0)
