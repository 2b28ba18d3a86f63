"""Posteriors without lambda, sigma^2 and intercept: print, plots, page and notebook."""

import dataclasses

import numpy as np
import pytest
from test_storage import explained

import eblime
from eblime import registry
from eblime.laws import Draws, DrawsLaw, NormalMixture, PointMass, normal_law
from eblime.plot.style import uncertain


def mixture(mean, cov):
    """Two normal laws with different spreads."""
    weights, means = np.array([0.3, 0.7]), np.stack([mean, mean])
    return NormalMixture(weights=weights, means=means, covs=np.stack([cov, 4 * cov]))


def drawn(mean, cov):
    """A law given by draws."""
    beta = np.random.default_rng(0).multivariate_normal(mean, cov, size=400)
    return DrawsLaw(draws=Draws(beta=beta))


LAWS = {
    "normal": normal_law,
    "mixture": mixture,
    "draws": drawn,
    "point": lambda mean, cov: PointMass(mean=mean, method="Robust"),
}


@dataclasses.dataclass(frozen=True)
class Robust:
    """A method of another package: least squares with a law of its own."""

    law: str = "normal"
    name: str = "Robust"

    def fit(self, rng, answers):
        """The posterior without any extras."""
        root = np.sqrt(answers.weights)[:, None]
        design = root * (answers.masks - answers.masks.mean(axis=0))
        precision = design.T @ design + 0.1 * np.eye(design.shape[1])
        mean = np.linalg.solve(precision, design.T @ (root[:, 0] * answers.scores))
        law = LAWS[self.law](mean, 0.01 * np.linalg.inv(precision))
        found = eblime.Posterior.from_law(law, answers, method=self.name)
        return dataclasses.replace(found, extras={})


@pytest.fixture(scope="module", params=LAWS)
def explanation(request):
    """An image explained by a method with that law."""
    return explained(Robust(request.param))


def test_explanation_prints(explanation):
    """The table has intervals exactly if the law has spread."""
    text = str(explanation)

    assert "Robust: " in text
    assert ("P(>0)" in text) == explanation.posterior.has_spread


_KINDS = ("map", "intervals", "means", "waterfall", "fit", "density", "ranks")


@pytest.mark.parametrize(
    "settings",
    [
        *({"kind": kind} for kind in _KINDS),
        *({"kind": "map", "of": of} for of in ("mean", "uncertainty", "variance", "sign", "top_k")),
    ],
)
def test_plots_of_any_law(explanation, settings, tmp_path):
    """Plots of spread refuse a point estimate; every other plot draws any law."""
    plain = settings.get("of") == "mean" or settings["kind"] in ("means", "waterfall", "fit")
    plain |= settings == {"kind": "map"}
    if explanation.posterior.has_spread or plain:
        explanation.plot(**settings).figure.savefig(tmp_path / "plot.png")
    else:
        with pytest.raises(eblime.core.NoSpreadError, match="Robust"):
            explanation.plot(**settings)


def test_lambda_plot_names_the_missing_ridge_parameter(explanation):
    """The error says that the method has none."""
    with pytest.raises(ValueError, match="Robust has no ridge parameter"):
        explanation.plot("lambda")


def test_page_and_notesection_of_any_law(explanation):
    """Both are built; the settings leave the ridge parameter out."""
    page, fragment = explanation.to_html(), explanation._repr_html_()

    assert "Ridge parameter" in explained().to_html()
    assert "Ridge parameter" not in page
    assert ('"density":' in page) == explanation.posterior.has_spread
    assert (">95 %</th>" in fragment) == explanation.posterior.has_spread


def test_poster_of_any_law(explanation):
    """The input, two panels for a point estimate, three otherwise, and bars for the colours."""
    figure = eblime.plot.poster.poster(explanation)

    uncoloured = uncertain(explanation).all()
    assert len(figure.axes) == (6 if explanation.posterior.has_spread else 4) - uncoloured


def test_tables_and_texts_of_any_law(explanation):
    """The plots of the other two domains."""
    method = explanation.method
    rows = np.random.default_rng(0).random((50, 4))
    row = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=60, method=method)
    text = eblime.TextExplainer(lambda texts: [len(text) for text in texts], method=method)
    for entry, kind in ((row.explain(rows[0]), "means"), (text.explain("one two three"), "text")):
        entry.plot(kind)
        eblime.plot.poster.poster(entry)

        assert "Robust" in entry.to_html()


@dataclasses.dataclass(frozen=True)
class Counting:
    """A method that counts its fits."""

    sizes: list
    name: str = "Counting"

    def fit(self, rng, answers):
        """Least squares of `Robust`."""
        self.sizes.append(answers.n_masks)
        return Robust().fit(rng, answers)


def test_convergence_uses_the_method_of_the_explanation():
    """The method object is fitted to more and more of the answers; the last fit exists already."""
    explanation = explained(Counting(sizes=[]))
    explanation.method.sizes.clear()
    explanation.plot("convergence")
    sizes = explanation.method.sizes

    assert sizes == sorted(sizes)
    assert len(sizes) > 5
    assert sizes[-1] < explanation.posterior.n_masks


def test_convergence_of_a_point_estimate_has_lines_only():
    """LIME has no intervals to fill."""
    ax = explained("lime").plot("convergence", top=3)

    assert len(ax.collections) == 0
    assert len(ax.lines) == 4  # three features, and zero


def test_maps_need_an_image():
    """A text is refused with the reason."""
    text = eblime.TextExplainer(lambda texts: [len(text) for text in texts]).explain("one two")
    with pytest.raises(TypeError, match=r"needs an image explanation; .* is 'text'"):
        text.plot("map")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("text", "needs a text explanation"),
        ("signal", "needs a signal explanation"),
        ("slices", "needs a volume explanation"),
        ("projections", "needs a volume explanation"),
    ],
)
def test_plots_of_other_domains_are_refused(kind, message):
    """The error names the domain that the plot needs and the one it got."""
    with pytest.raises(TypeError, match=rf'plot\("{kind}"\) {message}; .* is \'image\''):
        explained().plot(kind)


def test_widths_need_the_answers_alone():
    """A point estimate has answers too."""
    ax = explained().refit("lime").plot("width", top=1, widths=[1.0, 2.0])

    assert len(ax.collections) == 1


def test_all_plot_kinds_are_tested_here():
    """A new kind must be added to the tests of this file."""
    tested = {*_KINDS}
    tested |= {"lambda", "convergence", "width", "text"}
    tested |= {"signal", "slices", "projections"}

    assert tested == set(registry._BUILT_IN["plots"])
