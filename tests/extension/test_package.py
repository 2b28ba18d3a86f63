"""A package outside the library adds methods, a design, a kernel, a domain and plot kinds.

The package is `eblime_extras`, beside this file. It uses public names of eblime and entry points
only; no file of the library mentions it.
"""

import dataclasses
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from extension import cases
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime import registry
from eblime.plot.poster import poster

HERE = Path(__file__).parent
EXPLAINERS = {
    "method with a normal law": lambda: cases.text_explainer(method="normal"),
    "method with draws": lambda: cases.text_explainer(method="bootstrap"),
    "design": lambda: cases.text_explainer(design="rounds"),
    "kernel": lambda: cases.text_explainer(kernel="share"),
    "domain": cases.series_explainer,
    "all of them": cases.all_new_parts,
}


class Pulses:
    """A scene of a domain that is not registered."""

    domain, n_features, sizes = "pulses", 10, (64,)
    features = tuple(f"steps {6 * j}-{6 * j + 5}" for j in range(10))

    def __init__(self, values):
        self.values = values

    def inputs(self, masks):
        """Hidden windows are zero."""
        return self.values * masks.repeat(6, axis=1)


@functools.cache
def explained(name):
    """An explanation by one of the explainers; explanations are frozen, so tests can share it."""
    explainer = EXPLAINERS[name]()
    return explainer.explain(cases.PULSE if explainer.domain == "series" else cases.TEXT)


@pytest.fixture(params=EXPLAINERS)
def explanation(request):
    """An explanation that needs the package."""
    return explained(request.param)


def outside(code, *arguments):
    """Run code in a process where the package is not installed."""
    paths = [path for path in os.environ["PYTHONPATH"].split(os.pathsep) if path != str(HERE)]
    paths.append(str(Path(eblime.__file__).parents[1]))
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_library_does_not_mention_the_package():
    """Zero files of the library know the package."""
    sources = Path(eblime.__file__).parent.rglob("*.py")

    assert not [path for path in sources if "eblime_extras" in path.read_text(encoding="utf8")]


def test_the_registry_lists_the_package():
    """Its names come after the built-in ones."""
    assert registry.names("methods")[-2:] == ("normal", "bootstrap")
    assert registry.names("domains")[-1] == "series"
    assert registry.find("plots", "signs").__module__ == "eblime_extras.plots"


def test_a_series_explanation_finds_the_pulse():
    """The windows with the pulse raise the score, and the windows with the dip lower it."""
    e = cases.series_explainer().explain(cases.PULSE)
    sure = e.posterior.interval()
    names = np.array(e.features)

    assert set(names[sure[:, 0] > 0]) == {"steps 18-23", "steps 24-29"}
    assert "steps 42-47" in names[sure[:, 1] < 0]
    assert_allclose(e.scores, cases.peak(e.scene.inputs(e.masks)))
    assert e.prediction == pytest.approx(float(cases.peak(cases.PULSE[None])[0]))


def test_a_named_design_asks_in_rounds():
    """The design gets `n_masks` and sees the answers of earlier rounds."""
    e = cases.series_explainer(design="rounds", n_masks=100).explain(cases.PULSE)

    assert len(e.masks) == 100
    assert e.provenance["rounds"] == 3


def test_the_law_of_a_method_is_kept():
    """Intervals are those of the normal law, or quantiles of the draws."""
    normal = cases.text_explainer(method="normal").explain(cases.TEXT).posterior
    drawn = cases.text_explainer(method="bootstrap").explain(cases.TEXT).posterior

    assert_allclose(normal.interval()[:, 1], normal.mean + 1.959964 * normal.sd, rtol=1e-6)
    assert_allclose(drawn.interval().T, np.quantile(drawn.law.draws.beta, [0.025, 0.975], axis=0))


def test_print_and_tables(explanation):
    """Text, data frame and JSON have the numbers of the posterior."""
    post = explanation.posterior
    frame = explanation.to_frame()
    found = json.loads(explanation.to_json())

    assert post.method in str(explanation)
    assert "n_features" in repr(explanation)
    assert_array_equal(frame["mean"], post.mean)
    assert_array_equal(frame[["low", "high"]], post.interval())
    assert [entry["mean"] for entry in found["features"]] == pytest.approx(list(post.mean))
    assert found["method"] == post.method
    assert (found["lambda"] is None) == (post.method != "EBLIME")


def test_details_of_a_domain_are_columns():
    """The scene's own columns are in the data frame and in JSON."""
    e = cases.series_explainer().explain(cases.PULSE)

    assert list(e.to_frame()["start"][:3]) == [0, 6, 12]
    assert json.loads(e.to_json())["features"][1]["end"] == 11


def test_page_and_notebook(explanation):
    """Both show the method and the input with its features."""
    page, fragment = explanation.to_html(), explanation._repr_html_()

    assert explanation.posterior.method in page
    for j in range(explanation.scene.n_features):
        assert page.count(f'data-feature="{j}"') >= 2
        assert f'data-feature="{j}"' in fragment


def test_export_to_arviz(explanation):
    """The draws have the posterior's mean."""
    pytest.importorskip("arviz")
    found = explanation.to_arviz(n_draws=2_000)
    beta = np.asarray(found["posterior"]["beta"])[0]
    error = explanation.posterior.sd / np.sqrt(len(beta))

    assert (np.abs(beta.mean(axis=0) - explanation.posterior.mean) < 6 * error).all()


@pytest.mark.filterwarnings("default")
def test_export_to_shap(explanation):
    """Values and bounds are those of the posterior."""
    pytest.importorskip("shap")
    found = explanation.to_shap()

    assert_array_equal(found.values, explanation.posterior.mean)
    assert list(found.feature_names) == list(explanation.features)


@pytest.mark.parametrize(
    "explanation",
    ["all of them", *(pytest.param(name, marks=pytest.mark.slow) for name in [*EXPLAINERS][:-1])],
    indirect=True,
)
def test_all_plot_kinds_draw_or_refuse(explanation):
    """A kind that does not fit says why; all the others draw."""
    refused = {}
    for kind in registry.names("plots"):
        try:
            explanation.plot(kind).figure.canvas.print_figure(os.devnull, format="png")
        except (TypeError, ValueError) as error:
            refused[kind] = str(error)
    width = refused.pop("width", "")  # refused if the kernel of the package has none
    assert not width or "the kernel of this one is share" in width
    expected = {"map"}
    expected |= {"signal", "slices", "projections"}
    expected |= {"text"} if explanation.scene.domain == "series" else {"series"}
    reason = refused.pop("lambda", None)

    assert (reason is None) == (explanation.posterior.method == "EBLIME")
    assert reason is None or "no ridge parameter" in reason
    assert set(refused) == expected
    assert all("the domain of this one is" in message for message in refused.values())


def test_convergence_fits_the_methods_own_law():
    """The last point of the plot is the interval of the explanation itself."""
    e = cases.text_explainer(method="normal").explain(cases.TEXT)
    ax = e.plot("convergence", top=1)
    leading = int(np.abs(e.posterior.mean).argmax())

    assert ax.lines[0].get_ydata()[-1] == pytest.approx(e.posterior.interval()[leading].mean())


def test_the_poster_has_the_picture_of_the_domain():
    """The figure of the command line shows the plot kind that the domain names."""
    figure = poster(cases.series_explainer().explain(cases.PULSE))

    assert figure.axes[0].get_xlabel() == "step"
    assert len(figure.axes) == 2


@pytest.mark.parametrize("name", EXPLAINERS)
def test_save_and_load(name, tmp_path):
    """A loaded explanation has the same numbers, method and scene."""
    e = explained(name)
    loaded = eblime.load(e.save(tmp_path / "e.eblime"))

    assert_allclose(loaded.posterior.interval(), e.posterior.interval(), rtol=1e-9, atol=1e-12)
    assert loaded.method == e.method
    assert list(loaded.features) == list(e.features)
    assert_array_equal(loaded.scene.inputs(loaded.masks[:5]), e.scene.inputs(e.masks[:5]))
    assert_allclose(loaded.refit("eblime").posterior.mean, e.refit("eblime").posterior.mean)


SUMMARY = """
import sys, eblime, json
e = eblime.load(sys.argv[1])
e.to_html(), e.to_json(), str(e), e.plot()
try:
    e.refit(e.method)
except ValueError as error:
    assert "not installed" in str(error)
print(json.dumps({"method": e.posterior.method, "interval": e.posterior.interval().tolist()}))
"""


@pytest.mark.parametrize("method", [pytest.param("normal", marks=pytest.mark.slow), "bootstrap"])
def test_a_reader_without_the_method_gets_its_draws(method, tmp_path):
    """Stored draws replace the law; the bootstrap's draws are the law itself."""
    e = cases.text_explainer(method=method).explain(cases.TEXT)
    run = outside(SUMMARY, e.save(tmp_path / "e.eblime"))
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)

    assert found["method"] == e.posterior.method
    near = 1e-12 if method == "bootstrap" else 0.2 * e.posterior.sd.max()  # of 4,000 draws
    assert_allclose(found["interval"], e.posterior.interval(), atol=near)


def test_a_reader_without_the_domain_gets_a_clear_error(tmp_path):
    """The error names the domain and says what to do."""
    e = cases.series_explainer().explain(cases.PULSE)
    run = outside("import sys, eblime; eblime.load(sys.argv[1])", e.save(tmp_path / "e.eblime"))

    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert "needs the domain 'series', which is not installed here" in last


def test_a_scene_from_a_damaged_file_is_checked(tmp_path):
    """`check_scene` of the domain refuses windows that do not fit the series."""
    e = cases.series_explainer().explain(cases.PULSE)
    wrong = dataclasses.replace(e.scene, edges=[0, *e.scene.edges[2:-1], 10_000])
    bad = dataclasses.replace(e, scene=wrong)

    with pytest.raises(ValueError, match="windows of a series must cover it"):
        eblime.load(bad.save(tmp_path / "e.eblime"))


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_explain_many(workers, tmp_path):
    """A run has the numbers of explaining each series alone."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    inputs = [cases.PULSE, cases.PULSE[::-1].copy(), 2 * cases.PULSE]
    explainer = cases.all_new_parts()
    run = eblime.explain_many(
        cases.all_new_parts, inputs, tmp_path / "run", workers=workers, part_size=1
    )
    frame = run.frame()

    for number, series in enumerate(inputs):
        rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(number,)))
        alone = explainer.explain(series, rng=rng)
        rows = frame[frame["input"] == number].sort_values("place")
        assert_allclose(rows["mean"], alone.posterior.mean, rtol=1e-9, atol=1e-12)
    assert run.failures().empty


def test_a_run_can_be_resumed(tmp_path):
    """A second call finds nothing to do; other settings are refused."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    inputs = [cases.PULSE, 2 * cases.PULSE]
    first = eblime.explain_many(cases.all_new_parts(), inputs, tmp_path / "run").frame()
    again = eblime.explain_many(cases.all_new_parts(), inputs, tmp_path / "run").frame()
    other = cases.series_explainer(method="normal", kernel="share")

    assert_array_equal(first["mean"], again["mean"])
    with pytest.raises(ValueError, match="design"):
        eblime.explain_many(other, inputs, tmp_path / "run")


def test_explainers_have_short_representations():
    """The domain appears by its name."""
    shown = repr(cases.series_explainer(method="normal"))

    assert shown.startswith("Explainer(model=peak, kind=Domain('series')")
    assert "method='normal'" in shown


def test_a_domain_need_not_be_registered():
    """A record works without a name in the registry; the page then has no picture."""
    record = registry.find("domains", "series")
    unnamed = dataclasses.replace(record, name="pulses", read=lambda values: Pulses(values))
    e = eblime.Explainer(cases.peak, unnamed, n_masks=64).explain(cases.PULSE)

    assert "steps 18-23" in e.to_html()
    assert e._repr_html_()
    assert poster(e).axes
    with pytest.raises(TypeError, match="its domain is not registered"):
        e.save("e.eblime")


def test_unknown_names_are_refused_with_the_known_ones():
    """The list has the names of the package."""
    with pytest.raises(ValueError, match="'series'"):
        eblime.Explainer(cases.peak, "movie")
    with pytest.raises(ValueError, match="'normal', 'bootstrap'"):
        cases.text_explainer(method="nothing")
