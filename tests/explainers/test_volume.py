"""`VolumeExplainer` through the parts around it: files, runs, caches, rules, methods, networks."""

import inspect
import sys

import numpy as np
import pytest
from commands import run_command
from numpy.testing import assert_allclose

import eblime

BLOCKS = ("blocks", {"n": 2})


def corner(batch):
    """One block, and a third of another."""
    first = batch[:, :3, :3, 3:].mean(axis=(1, 2, 3))
    return first + 0.3 * batch[:, 3:, :3, :3].mean(axis=(1, 2, 3))


@pytest.fixture
def volume(rng):
    """Cubes of 3 voxels a side, all of them bright."""
    return (1 + rng.random((6, 6, 6))).astype(np.float32)


def explainer_of(model=None, **settings):
    """Eight blocks, hidden ones are zero."""
    return eblime.VolumeExplainer(model or corner, BLOCKS, 0, **settings)


def test_files_json_and_caches_keep_an_explanation(tmp_path, volume):
    """The scene comes back from the file, and the cache answers the second time."""
    calls = []

    def counted(batch):
        calls.append(len(batch))
        return corner(batch)

    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="corner")
    explainer = explainer_of(counted, spacing=(1, 1, 2), cache=cache)
    e = explainer.explain(volume)
    n = sum(calls)
    again = explainer.explain(volume)
    e.save(tmp_path / "e.eblime")
    loaded = eblime.load(tmp_path / "e.eblime")

    assert sum(calls) == n + 1  # one answer is checked
    assert_allclose(again.posterior.mean, e.posterior.mean)
    assert loaded.scene.details() == e.scene.details()
    assert loaded.scene.spacing == [1.0, 1.0, 2.0]
    assert "centre_z_mm" in str(e.to_json())
    assert "block (0, 0, 1)" in e.to_html()


def test_stop_rules_quadrature_and_comparisons(volume):
    """They find the planted blocks."""
    many = eblime.VolumeExplainer(corner, ("blocks", {"n": 3}), 0)
    stopped = many.explain(volume, until=eblime.TopK(1), max_masks=2000)
    exact = explainer_of(method=eblime.Quadrature(index="shapley")).explain(volume)
    found = eblime.compare(None, volume, explainer=explainer_of(), methods=["eblime", "lime"])
    game = eblime.game(corner, volume, explainer=explainer_of())

    assert len(stopped.masks) < 2000
    top = [name for name, _ in exact.as_list(top=2)]
    assert top == ["block (0, 0, 1)", "block (1, 0, 0)"]
    expected = volume[:3, :3, 3:].mean(), 0.3 * volume[3:, :3, :3].mean()
    assert_allclose(exact.posterior.mean[[1, 4]], expected, rtol=1e-4)
    assert list(found) == ["eblime", "lime"]
    assert game.n_players == 8


def test_shapiq(volume):
    """The values are the means."""
    pytest.importorskip("shapiq")
    e = explainer_of().explain(volume)

    assert_allclose(e.to_shapiq().get_n_order_values(1)[1], e.posterior.mean[1])


def test_arviz(volume):
    """The features have their names."""
    pytest.importorskip("arviz")
    e = explainer_of().explain(volume)

    assert "block (0, 0, 1)" in list(e.to_arviz().posterior["feature"].values)


def test_a_run_reads_a_folder_of_volumes(tmp_path, rng):
    """`explain_many` finds the files that the explainer reads."""
    pytest.importorskip("pyarrow")
    for k in range(2):
        np.save(tmp_path / f"{k}.npy", rng.random((6, 6, 6)))
    run = eblime.explain_many(explainer_of(), tmp_path, out=tmp_path / "run", workers=1)

    assert len(run.frame()) == 16
    assert run.failures().empty


@pytest.mark.slow
def test_the_command_line_explains_files_and_folders(tmp_path, monkeypatch, capsys, volume):
    """One file, a folder, a run; errors name the option."""
    (tmp_path / "flaws.py").write_text(inspect.getsource(corner))
    (tmp_path / "scans").mkdir()
    for name in ("a", "b"):
        np.save(tmp_path / "scans" / f"{name}.npy", volume)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    words = ("--model", "flaws:corner", "--segmentation", "blocks:n=(2,2,2)", "--hide", 0)
    one = run_command(
        *(capsys, "explain", "volume", "scans/a.npy", *words, "--spacing", "1,1,2", "--out", "one"),
        *("--origin", "120,0,35"),
    )
    two = run_command(capsys, "explain", "volume", "scans", *words, "--out", "two")
    bad = run_command(capsys, "explain", "volume", "scans", *words, "--spacing", "1,b")
    short = run_command(capsys, "explain", "volume", "scans", *words, "--spacing", "1,2")

    assert one[0] == 0, one[2]
    assert "block (0, 0, 1)" in one[1]
    scene = eblime.load(tmp_path / "one" / "a.eblime").scene
    assert (scene.spacing, scene.origin) == ([1.0, 1.0, 2.0], [120.0, 0.0, 35.0])
    assert two[0] == 0, two[2]
    assert {p.stem for p in (tmp_path / "two").iterdir()} == {"a", "b"}
    assert bad[0] != 0
    assert "must be numbers such as 0.5,1,1" in bad[2]
    assert "--spacing must be 3 numbers" in short[2]
    pytest.importorskip("pyarrow")
    batch = run_command(capsys, "batch", "volume", "scans", *words, "--out", "run", "--workers", 1)
    assert batch[0] == 0, batch[2]


@pytest.mark.parametrize("axis", [None, 0, 3])
@pytest.mark.parametrize("timeout", [None, 60])
def test_networks_with_3d_weights_get_channels_first(volume, axis, timeout):
    """Rendered for the network, and with a timeout as batches of arrays: the same scores."""
    torch = pytest.importorskip("torch")
    channels = 1 if axis is None else 2
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv3d(channels, 2, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool3d(1)
    ).append(torch.nn.Flatten())
    model = eblime.TorchModel(network, activation="none")
    array = volume if axis is None else np.stack([volume, 1 - volume], axis=axis)
    e = explainer_of(model, n_masks=50, calls=eblime.Calls(timeout=timeout)).explain(
        array, target=1
    )
    first = volume[None] if axis is None else np.moveaxis(array, axis, 0)
    with torch.no_grad():
        expected = network(torch.from_numpy(np.ascontiguousarray(first))[None])[0, 1]

    assert_allclose(e.prediction, float(expected), rtol=1e-5)


def test_onnx_graphs_get_their_layout(volume):
    """(n, D, H, W) becomes (n, 1, D, H, W)."""
    from eblime.models.onnx import _arrange

    batch = volume[None]
    assert _arrange(batch, ["n", 1, 6, 6, 6]).shape == (1, 1, 6, 6, 6)
    assert _arrange(batch[..., None], ["n", 1, "d", "h", "w"]).shape == (1, 1, 6, 6, 6)
    with pytest.raises(ValueError, match="must have the shape of the graph's input"):
        _arrange(batch, ["n", 1, 7, 6, 6])
