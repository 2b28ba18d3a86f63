"""Finding and downloading data files; with EBLIME_DATA, the contents of the real ones."""

import hashlib
import os
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from eblime.datasets import coffee
from studies.data import files
from studies.data.files import digest, find
from studies.data.photos import cut_coarsely, photo_set, read_square

REAL = os.environ.get("EBLIME_DATA")
real = pytest.mark.skipif(not REAL, reason="EBLIME_DATA is not set")


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A folder without local data and with an empty cache."""
    monkeypatch.delenv("EBLIME_DATA", raising=False)
    monkeypatch.setenv("EBLIME_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def server(tmp_path):
    """A folder that a server on this machine offers, and its URL."""
    pytest.importorskip("pooch")
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = Thread(target=running.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without printing every request."""

    def log_message(self, *args):
        """Print nothing."""


def test_file_is_downloaded_once(empty, server):
    """The second call reads the cache."""
    folder, url = server
    (folder / "b.txt").write_bytes(b"data")
    digest = hashlib.sha256(b"data").hexdigest()
    path = find("a/b.txt", url=f"{url}/b.txt", sha256=digest)
    (folder / "b.txt").unlink()

    assert path == empty / "cache" / "a" / "b.txt"
    assert path.read_bytes() == b"data"
    assert find("a/b.txt", url=f"{url}/b.txt", sha256=digest) == path


def test_damaged_file_in_the_cache_is_downloaded_again(empty, server):
    """The checksum of a cached file is verified."""
    folder, url = server
    (folder / "b.txt").write_bytes(b"data")
    digest = hashlib.sha256(b"data").hexdigest()
    path = find("a/b.txt", url=f"{url}/b.txt", sha256=digest)
    path.write_bytes(b"dat")

    assert find("a/b.txt", url=f"{url}/b.txt", sha256=digest).read_bytes() == b"data"


def test_download_with_a_wrong_checksum_is_refused(empty, server):
    """Nothing stays in the cache."""
    folder, url = server
    (folder / "b.txt").write_bytes(b"other")
    with pytest.raises(ValueError, match="does not match the known hash"):
        find("a/b.txt", url=f"{url}/b.txt", sha256="0" * 64)

    assert not (empty / "cache" / "a" / "b.txt").exists()


def test_failed_download_names_the_path_for_the_file(empty, server):
    """Without a network, the user can put the file there."""
    _, url = server
    with pytest.raises(ConnectionError, match=r"put the file at .*b\.txt"):
        find("a/b.txt", url=f"{url}/missing.txt")


def test_missing_file_without_a_url_names_the_environment_variable(empty):
    """A file in the cache is found; else the message says what to set."""
    with pytest.raises(FileNotFoundError, match="set EBLIME_DATA to that folder"):
        find("b.txt", url=None)
    (empty / "cache" / "b.txt").write_text("data")

    assert find("b.txt", url=None) == empty / "cache" / "b.txt"


def test_local_copy_is_preferred(empty, monkeypatch):
    """EBLIME_DATA is used first; a folder that does not exist is refused."""
    (empty / "data").mkdir()
    (empty / "data" / "x.txt").write_text("here")
    monkeypatch.setenv("EBLIME_DATA", str(empty / "data"))
    assert find("x.txt", url="http://127.0.0.1:9/x.txt") == empty / "data" / "x.txt"

    monkeypatch.setenv("EBLIME_DATA", str(empty / "gone"))
    with pytest.raises(FileNotFoundError, match="must be an existing folder"):
        files.local_folder()


def test_default_cache_is_the_users_cache_folder(tmp_path, monkeypatch):
    """As platformdirs names it; EBLIME_CACHE comes first."""
    platformdirs = pytest.importorskip("platformdirs")
    monkeypatch.delenv("EBLIME_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name, **_: tmp_path / name)
    assert files.cache_folder() == tmp_path / "eblime"

    monkeypatch.setenv("EBLIME_CACHE", str(tmp_path / "mine"))
    assert files.cache_folder() == tmp_path / "mine"


@pytest.mark.parametrize("package", ["platformdirs", "pooch"])
def test_missing_package_names_the_extra(empty, monkeypatch, package):
    """For the cache folder and for downloads."""
    if package == "platformdirs":
        monkeypatch.delenv("EBLIME_CACHE")
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ImportError, match=f"pip install {package}"):
        find("a/b.txt", url="http://127.0.0.1:9/b.txt")


def test_digests_depend_on_content(tmp_path):
    """Of files, also in folders, of arrays and of text; not on the folder."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_text("one")
    (tmp_path / "f").write_text("one")
    before = digest(tmp_path / "f")

    assert before == digest(tmp_path / "a" / "f") == digest(tmp_path / "a")
    (tmp_path / "f").write_text("two")
    assert digest(tmp_path / "f") != before
    assert digest(np.zeros(4)) != digest(np.zeros(3)) != digest(np.zeros(3, dtype=np.float32))
    assert digest("ab", "c") != digest("a", "bc")


def test_coarse_superpixels_are_at_most_13():
    """Few enough to score every mask."""
    assert cut_coarsely(coffee()).max() < 13


@real
def test_tables_have_the_published_sizes():
    """Rows, columns and class shares are those of the sources."""
    from studies.data.tabular import compas, forest, german

    credit, risk = german(), compas()

    assert credit.data.shape == (1000, 20)
    assert credit.target.mean() == 0.7
    assert not credit.data.isna().any().any()
    assert risk.data.shape == (6172, 7)
    wider = compas(["juv_fel_count"]).data
    assert wider.drop(columns="juv_fel_count").equals(risk.data)
    assert wider["juv_fel_count"].ge(0).all()
    assert forest(credit, trees=5).predict_proba(credit.data[:3]).shape == (3, 2)


@real
def test_photos_of_the_papers_classes():
    """Their number, size and class."""
    for name, count in (("french-bulldog", 40), ("broccoli", 40), ("corn", 1), ("scuba-diver", 1)):
        photos = photo_set(name)
        assert len(photos) == count
        assert read_square(photos[0].path).shape == (224, 224, 3)
    assert photo_set("french-bulldog")[0].target == 245


@real
def test_review_sentences_are_explained_by_their_words():
    """rt-polarity, TF-IDF and logistic regression: a positive word has a positive importance."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    import eblime
    from studies.data.text import rt_polarity

    texts, labels = rt_polarity()
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=4)).fit(texts, labels)
    e = eblime.TextExplainer(model).explain("a gorgeous film, but dull and boring", "praise")
    mean = dict(zip(e.features, e.posterior.mean, strict=True))

    assert len(texts) == len(labels) == 10_662
    assert mean["word 'gorgeous'"] > 0.05
    assert mean["word 'dull'"] < -0.05


@real
def test_masks_of_drilled_holes_cover_their_echoes():
    """For each of the eight holes, the patch is brighter inside the mask than outside."""
    if not (Path(REAL) / "ultrasonic" / "PlaneScan3D_PlexiAluFBH.mat").exists():
        pytest.skip("no ultrasonic scans in EBLIME_DATA")
    from studies.data.drilled import drilled_patches

    found = drilled_patches()
    for hole in range(8):
        here = found.holes == hole
        inside = found.images[here][found.defects[here]].mean()
        outside = found.images[here][~found.defects[here]].mean()
        assert inside > outside + 20, hole
    assert np.sum(found.holes < 0) == np.sum(found.holes >= 0)
