"""The view of an input comes from the record of its domain, also of another package's domain."""

import base64
import dataclasses
import io
import re

import numpy as np
import pytest
from PIL import Image
from series_domain import series_domain

import eblime
from eblime import registry
from eblime.domains.signal import SIGNAL, SignalScene
from eblime.plot.style import STRONGEST, signed_shares, uncertain
from eblime.reporting.views import signal_view, thumbnail


@pytest.fixture
def explain(monkeypatch):
    """A function that registers a domain and explains a series."""

    def run(**changes):
        monkeypatch.setitem(registry._ADDED["domains"], "series", series_domain(**changes))
        explainer = eblime.Explainer(
            lambda batch: batch @ np.linspace(-1, 2, 20), kind="series", n_masks=40
        )
        return explainer.explain(np.ones(20), rng=0)

    return run


def test_page_shows_the_view_of_the_domain(explain):
    """As HTML, in a figure; names elsewhere in the page are escaped."""
    page = explain().to_html()

    assert '<svg viewBox="0 0 50 20"><rect data-feature="0"' in page.partition("<figure>")[2]
    assert "<bdi>segment 0 &lt;b&gt;</bdi>" in page


def test_view_can_be_given_by_name(explain):
    """As "module:name", which is imported when the page is built."""
    assert '<rect data-feature="0"' in explain(view="series_domain:view").to_html()


def test_domain_without_a_view_has_a_page_without_a_figure(explain):
    """The table of features takes its place."""
    e = explain(view=None)

    assert "<figure" not in e.to_html()
    assert "segment 4" in e.to_html()
    assert "<rect" not in e._repr_html_()


def test_notebook_colours_the_features_of_any_view(explain):
    """Each feature that matters has a rule, for this view alone."""
    e = explain()
    fragment = e._repr_html_()
    strongest = int(np.abs(e.posterior.mean).argmax())
    name = re.search(r'<div id="(eblime-\w+)"', fragment)[1]

    assert f'#{name} [data-feature="{strongest}"]{{fill:' in fragment
    strength = STRONGEST * abs(signed_shares(e)).max()
    assert fragment.count(f"fill-opacity:{strength:.2f}") == 1
    assert '<svg viewBox="0 0 50 20">' in fragment


def test_table_has_no_figure():
    """Its features say everything."""
    rows = np.random.default_rng(0).random((40, 3))
    e = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=40).explain(rows[0])

    assert "<figure" not in e.to_html()
    assert '"value":[' in e.to_html()


@pytest.mark.parametrize(("picture", "panels"), [("intervals", 1), ("ranks", 3)])
def test_poster_draws_the_picture_of_the_domain(explain, picture, panels):
    """Intervals alone are one panel; another picture has the intervals beside it."""
    figure = eblime.plot.poster.poster(explain(picture=picture))

    assert len(figure.axes) == panels  # "ranks" has a colour bar


def test_domain_that_is_not_registered_has_a_page_without_a_figure(explain, monkeypatch):
    """The table and the numbers are there."""
    e = explain()
    monkeypatch.delitem(registry._ADDED["domains"], "series")
    page = e.to_html()

    assert "<figure>" not in page
    assert e.label in page


def volume(side=12, **settings):
    """Noise whose upper corner matters."""
    explainer = eblime.VolumeExplainer(
        lambda batch: batch[:, : side // 2, : side // 2, : side // 2].mean(axis=(1, 2, 3)),
        segmentation=("blocks", {"n": 2}),
        hide=0,
        n_masks=40,
        **settings,
    )
    noise = np.random.default_rng(0).random((side,) * 3, dtype=np.float32)
    return explainer.explain(noise, rng=0)


def test_page_of_a_volume_has_slices_with_sliders_and_projections():
    """Three sliders with names, six panels, positions and sizes; nothing is fetched."""
    e = volume(spacing=(1, 1, 2))
    scene = dataclasses.replace(e.scene, axes=["<i>z</i>", "y", "x"])
    page = dataclasses.replace(e, scene=scene).to_html()
    view = re.sub(r"<template>.*?</template>", "", page, flags=re.DOTALL)

    assert page.count('<input type="range" min="0" max="11"') == 3
    assert 'aria-label="&lt;i&gt;z&lt;/i&gt;-x: position along y"' in page
    assert view.count('<svg class="slice"') == 6
    assert page.count('<svg class="slice"') == 6 + 36
    assert "<i>z</i>" not in page
    assert "y, x = 2.5, 2.5, 5; size 6 x 6 x 12 mm" in page
    assert 'src="http' not in page
    assert 'href="http' not in page


@pytest.mark.slow
def test_page_of_a_large_volume_is_below_5_mb():
    """Noise in 128^3 voxels, which no format compresses."""
    assert len(volume(128).to_html()) < 5e6


def test_notebook_shows_a_volume_without_stored_slices():
    """There is no script that would show them."""
    fragment = volume()._repr_html_()

    assert fragment.count('<svg class="slice"') == 6
    assert "<template" not in fragment
    assert "<input" not in fragment
    assert len(fragment) < 200_000


def signal(channels=2, **fields):
    """A signal in four windows per channel; names that look like HTML."""
    labels = np.arange(channels)[:, None] * 4 + np.arange(40) // 10
    names = [f"<i>{c}</i>" for c in range(channels)]
    blank = {"parts": labels, "bands": None, "times": None, "unit": "", "start": "", "fade": 0}
    values = np.sin(np.arange(40.0)) * np.ones((channels, 1))
    blank |= {"signal": values, "hidden": np.zeros((1, channels, 40)), "channels": names}
    scene = SignalScene(**blank | fields)
    domain = dataclasses.replace(SIGNAL, read=lambda x: scene)
    noise = np.random.default_rng(0)

    def model(batch):
        return (batch[:, 0, 10:20] ** 2).mean(axis=1) + 0.05 * noise.normal(size=len(batch))

    return eblime.Explainer(model, domain, n_masks=100).explain(values, rng=0)


def test_view_of_a_signal_has_a_box_per_window():
    """Coloured and hatched as in the plot; names are escaped; the time axis has its unit."""
    e = signal(times=np.arange(40) / 4, unit="<s>")
    view = str(signal_view(e))
    unsure = uncertain(e)

    assert view.count("data-feature=") == 8
    assert view.count('class="unsure"') == unsure.sum() < 8
    assert view.count('display="none"') == (~unsure).sum()
    assert "&lt;i&gt;0&lt;/i&gt;" in view
    assert "<i>" not in view
    assert "time (&lt;s&gt;)" in view
    assert 'tabindex="0" role="application" aria-label="The signal; arrow keys' in view
    strongest = re.search(r'data-feature="1"[^>]*fill="(.*?)" fill-opacity="(.*?)"', view)
    assert strongest.groups() == ("#009E73", f"{STRONGEST * signed_shares(e)[1]:.2f}")


def test_view_of_bands_is_a_spectrogram():
    """One box per band over a picture."""
    bands = np.array([[0, 0.1], [0.1, 0.25], [0.25, 0.5]])
    view = str(signal_view(signal(1, parts=np.zeros((1, 40), dtype=np.intp), bands=bands)))

    assert view.count("data-feature=") == 3
    assert '<image href="data:image/' in view
    assert "frequency (cycles per sample)" in view


def test_view_says_that_channels_are_left_out():
    """Twelve are drawn."""
    view = str(signal_view(signal(14)))

    assert view.count("data-feature=") == 48
    assert "the 12 of 14 channels with the largest importances" in view


def test_thumbnails_of_grey_images_are_coloured_where_it_is_certain():
    """The corner that matters is green; the dark rest has no colour."""
    image = np.random.default_rng(0).random((40, 40)) / 2
    e = eblime.ImageExplainer(
        lambda batch: batch[:, :20, :20].mean(axis=(1, 2)),
        segmentation=("grid", {"rows": 2, "columns": 2}),
        hide=0,
    ).explain(image)
    code = thumbnail(e).partition(";base64,")[2]
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(code))).convert("RGB")).astype(int)
    green = shown[..., 1] - shown[..., 0]

    assert green[:18, :18].mean() > 30
    assert abs(green[22:].mean()) < 5


def test_thumbnails():
    """A small picture that shows which features certainly raise the score."""
    uri = thumbnail(volume())

    assert uri.startswith("data:image/")
    assert len(uri) < 20_000
    _, _, code = uri.partition(";base64,")
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(code))).convert("RGB"))
    assert pixels.std() > 5
