import numpy as np
import pytest
from skimage import data

import eblime
from eblime.plot.bars import compare
from eblime.plot.kinds import KINDS

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def explanation():
    """A photo and a model that looks at its middle."""
    photo = data.astronaut()[:200:2, 100:300:2]
    return eblime.ImageExplainer(
        lambda batch: batch[:, 30:60, 30:60].mean(axis=(1, 2, 3)) / 255, n_masks=150
    ).explain(photo)


@pytest.fixture(scope="module")
def others():
    """A row of a table and a text, for the pictures that are theirs."""
    rows = np.random.default_rng(0).random((50, 12))
    row = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=100).explain(rows[0])
    text = eblime.TextExplainer(lambda texts: [len(text) for text in texts], n_masks=100)
    return {"values": row, "text": text.explain("a good film, a good story and a happy end")}


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_draws_on_what_it_is_given(explanation, others, kind, tmp_path):
    """New axes without a window, or the user's; the explanation is not changed; it can be saved."""
    from matplotlib.figure import Figure

    explanation = others.get(kind, explanation)
    before = explanation.posterior.mean.copy()
    fresh = explanation.plot(kind)
    given = Figure().subplots()
    drawn = explanation.plot(kind, ax=given)
    fresh.figure.savefig(tmp_path / "p.png")

    assert drawn is given
    assert fresh is not given
    assert len(given.get_children()) > 8
    assert np.array_equal(explanation.posterior.mean, before)
    assert (tmp_path / "p.png").stat().st_size > 2_000


def test_two_explanations_compared(explanation):
    """One row a feature, two marks each; other features are refused."""
    drawn = compare(explanation, explanation.refit("bayeslime"), top=6)

    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["EBLIME", "BayesLIME"]
    assert len(drawn.get_yticklabels()) == 6
    other = eblime.ImageExplainer(
        lambda batch: batch.mean(axis=(1, 2)), segmentation="grid", hide=0, n_masks=60
    ).explain(np.random.default_rng(0).random((14, 14)))
    with pytest.raises(ValueError, match=r"must have the same features"):
        compare(explanation, other)


@pytest.mark.parametrize("layout", ["grey", "first", "float"])
def test_maps_take_any_image(layout):
    """Grey, channel-first and float images are drawn as people see them."""
    photo = data.astronaut()[:60:2, 100:160:2]
    layouts = {"grey": photo[..., 0], "first": photo.transpose(2, 0, 1), "float": photo / 99.0}
    e = eblime.ImageExplainer(
        lambda batch: batch.reshape(len(batch), -1).mean(axis=1),
        segmentation="grid",
        hide=0,
        n_masks=80,
    ).explain(layouts[layout])

    assert e.plot("map").get_images()[0].get_array().shape == (30, 30, 3)


def test_unknown_kinds_are_refused(explanation):
    """By name, with the list."""
    with pytest.raises(ValueError, match=r"`kind` must be one of 'intervals', 'means'"):
        explanation.plot("pie")
