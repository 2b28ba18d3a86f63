"""Each study that needs no data of its own runs, on small tables of answers."""

import numpy as np
import pytest

from studies.__main__ import main
from studies.designs import inputs_of

SMALL = [
    "coverage-by-rank --cases p13 games --items 1 --fits 2 --sizes 60",
    "coverage-texts --cases transformer --items 1 --fits 1 --sizes 60",
    "designs --items 1 --seeds 1 --sizes 50",
    "held-out --items 1",
    "indices --items 1 --n 60",
    "league --games games-dev.npz --photos --limit 1 --calls 5 --summary l.csv",
    "overall --hardest --seeds 2",
    "pool --seeds 1 --sizes 40",
    "quadrature --items 1 --cases p13 p40 --fits 1 --sizes 100",
    "stability --dataset stored-games --n 60 --runs 2",
    "stopping --games --items 1 --max-masks 100",
    "stopping --items 1 --rules top1 --seeds 1 --fixed-seeds 2 --max-masks 200",
]


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder of answers: smooth functions of the mask, as photos, texts and games."""
    rng = np.random.default_rng(0)
    masks = ((np.arange(2**9)[:, None] >> np.arange(9)) & 1).astype(float)
    half = rng.integers(0, 2, (300, 12))

    def scores(masks):
        drive = masks @ rng.normal(size=masks.shape[1]) + masks[:, 0] * masks[:, 1]
        return 1 / (1 + np.exp(-drive / 2))

    np.savez(tmp_path / "imagenet-p13.npz", names=["a"], scores_0=scores(masks))
    np.savez(
        tmp_path / "imagenet-p40.npz",
        names=["a"],
        segments=np.arange(12).reshape(1, 3, 4),
        masks_0=np.packbits(half.astype(bool), axis=1),
        scores_0=scores(np.vstack([half, 1 - half]).astype(float)),
    )
    np.savez(tmp_path / "games-dev.npz", **{"sent/one": scores(masks)})
    monkeypatch.setenv("EBLIME_TABLES", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", ["texts", "p13", "p40"])
def test_designs_takes_no_more_inputs_than_there_are(tables, kind):
    """By default it wants twenty inputs of each kind; there is one."""
    assert list(inputs_of(kind, 20)) == [0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("words", SMALL, ids=lambda words: words.split()[0])
def test_studies_run(tables, words, capsys, monkeypatch):
    """And print a table or a sentence with numbers."""
    if words.startswith("held-out"):
        monkeypatch.setattr("studies.held_out.CASES", ("p13", "breast-cancer"))
    study = words.split()[0]
    main([*words.split(), *(["--jobs", "1"] if study != "overall" else [])])
    out = capsys.readouterr().out

    assert any(character.isdigit() for character in out)
    assert "| nan |" not in out


@pytest.mark.slow
def test_a_killed_run_is_compared_with_one_that_is_not(capsys):
    """All parts have the same bytes."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    main(["speed-batch", "--only", "kills", "--long", "1000"])
    out = capsys.readouterr().out

    assert "16 of 16 parts have the same bytes" in out
    assert "| nan |" not in out
