"""The view of an input comes from the record of its domain, also of another package's domain."""

import numpy as np
import pytest
from series_domain import series_domain

import eblime
from eblime import registry


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

    assert '<figure><svg viewBox="0 0 50 20"><rect data-feature="0"' in page
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
    """Elements with `data-feature` get a style; other elements do not."""
    e = explain()
    fragment = e._repr_html_()
    strongest = int(np.abs(e.posterior.mean).argmax())
    tag = fragment[fragment.index(f'<rect data-feature="{strongest}"') :].split(">")[0]

    assert 'style="' in tag
    assert "fill-opacity:0.75" in tag
    assert tag.endswith("/")
    assert '<svg viewBox="0 0 50 20">' in fragment


def test_style_of_a_view_is_kept_in_a_notebook(explain):
    """The colour is added to it."""
    e = explain(view=lambda e: '<i data-feature="1" style="margin:0">x</i> data-feature="1"')
    fragment = e._repr_html_()

    assert fragment.count("background-color") == 1
    assert ";margin:0" in fragment


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
