"""Loading the models that `--model` names."""

import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eblime.cli.assembly import load_model


@pytest.mark.parametrize("score", [1, 2])
def test_a_module_in_the_folder_of_the_user_is_imported(tmp_path, monkeypatch, score):
    """Not a module of the same name that another test has imported."""
    (tmp_path / "module_of_the_user.py").write_text(f"def model(rows): return {score}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    assert load_model("module_of_the_user:model")([]) == score


@pytest.mark.parametrize(
    "name",
    [
        "sklearn.metrics._dist_metrics.newObj",
        "sklearn.metrics._dist_metrics.PyFuncDistance64",
        "sklearn.neural_network._stochastic_optimizers.np",
        "numpy.dtype[os.system]",
        "os.system",
    ],
)
def test_only_listed_types_of_a_skops_file_are_loaded(tmp_path, monkeypatch, name):
    """A name from a listed module is not enough: the class itself must be listed."""
    io = pytest.importorskip("skops.io")
    path = tmp_path / "m.skops"
    io.dump([1, 2], path)
    monkeypatch.setattr(io, "get_untrusted_types", lambda file: [name])

    with pytest.raises(PermissionError, match=re.escape(name)):
        load_model(str(path))


@pytest.mark.parametrize("version", ["0.10.0", "0.11.1"])
def test_an_old_skops_is_refused(tmp_path, monkeypatch, version):
    """Versions before 0.12 can be deceived about the types in a file."""
    skops = pytest.importorskip("skops")
    path = tmp_path / "m.skops"
    path.touch()
    monkeypatch.setattr(skops, "__version__", version)

    with pytest.raises(ImportError, match=r"skops must be 0\.12 or later"):
        load_model(str(path))


@pytest.mark.parametrize("algorithm", ["ball_tree", "kd_tree"])
def test_neighbours_in_a_skops_file_need_no_trust(tmp_path, algorithm):
    """Trees and metrics of scikit-learn only hold numbers."""
    io = pytest.importorskip("skops.io")
    from sklearn.neighbors import KNeighborsClassifier

    points = np.random.default_rng(0).normal(size=(40, 2))
    for metric in ("euclidean", "manhattan", "chebyshev"):
        model = KNeighborsClassifier(algorithm=algorithm, metric=metric)
        io.dump(model.fit(points, points[:, 0] > 0), tmp_path / "m.skops")
        again = load_model(str(tmp_path / "m.skops"))

        assert_array_equal(again.predict(points), model.predict(points))


def test_the_address_of_a_server_is_left_to_the_explainer():
    """A language model; nothing is opened."""
    assert load_model("http://localhost:1/v1") == "http://localhost:1/v1"
