"""All registered methods, designs, kernels, domains and plot kinds pass the public checks.

Registering a name is enough to have it tested here. A domain also needs a sample input in
`SAMPLES`.
"""

import numpy as np
import pytest

import eblime
from eblime import registry, testing
from eblime.answers import Proposal

_RNG = np.random.default_rng(0)
ROWS = _RNG.random((60, 4))
IMAGE = _RNG.integers(0, 256, (12, 16, 3), dtype=np.uint8)


def image():
    """An explainer of images, and an image."""
    grid = ("grid", {"rows": 2, "columns": 4})
    model = lambda batch: batch[:, :6].mean(axis=(1, 2, 3))  # noqa: E731
    return eblime.ImageExplainer(model, segmentation=grid, n_masks=200), IMAGE


def tabular():
    """An explainer of rows, and a row."""
    return eblime.TabularExplainer(lambda rows: rows[:, 0] - rows[:, 2], ROWS, n_masks=200), ROWS[0]


def text():
    """An explainer of texts, and a text."""
    score = lambda texts: [("good" in text) + 0.1 * len(text) for text in texts]  # noqa: E731
    return eblime.TextExplainer(score, n_masks=200), "a good film, a bad story and a happy end"


def prompt():
    """An explainer of sources, and a question with its answer."""
    score = lambda prompts: [2.0 * ("1889" in p) + 0.001 * len(p) for p in prompts]  # noqa: E731
    notes = ["It opened in 1889.", "It is in Paris.", "Paris lies on the Seine.", "No idea."]
    question = {"question": "When did it open?", "answer": "In 1889. Or later."}
    return eblime.PromptExplainer(score, notes, kernel="euclidean"), question


def volume():
    """An explainer of volumes, and a volume."""
    model = lambda batch: batch[:, :3].mean(axis=(1, 2, 3))  # noqa: E731
    blocks = ("blocks", {"n": (2, 2, 3)})
    explainer = eblime.VolumeExplainer(model, segmentation=blocks, spacing=(2, 1, 1), n_masks=200)
    return explainer, _RNG.random((6, 8, 9)).astype(np.float32)


def signal():
    """An explainer of signals, and a signal of two channels."""
    model = lambda batch: batch[:, 0, 10:20].max(axis=1)  # noqa: E731
    cells = ("cells", {"n": 4})
    return eblime.SignalExplainer(model, cells, rate=50), np.random.default_rng(0).random((2, 40))


SAMPLES = {
    **{
        "image": image,
        "tabular": tabular,
        "text": text,
        "prompt": prompt,
        "signal": signal,
        "volume": volume,
    },
}


@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods(name):
    """Fits of many shapes, consistent laws, files."""
    testing.check_method(name)


@pytest.mark.parametrize("name", registry.names("designs"))
def test_designs(name):
    """Masks of zeros and ones, round by round."""
    testing.check_design(name)


@pytest.mark.parametrize("name", registry.names("kernels"))
def test_kernels(name):
    """Weights from 0 to 1."""
    testing.check_kernel(name)


@pytest.mark.parametrize("name", registry.names("domains"))
def test_domains(name):
    """Scenes, neighbourhoods and explanations."""
    assert name in SAMPLES, f"add a sample of {name!r} to SAMPLES"
    testing.check_domain(*SAMPLES[name]())


@pytest.fixture(scope="module")
def explanations():
    """One explanation of each domain."""
    pytest.importorskip("matplotlib")
    return [explainer.explain(x) for explainer, x in (sample() for sample in SAMPLES.values())]


@pytest.mark.parametrize("kind", registry.names("plots"))
def test_plots(kind, explanations):
    """Each kind draws at least one of them."""
    testing.check_plot(kind, explanations)


class Always:
    """A design whose second round always shows the first feature, without weights for it."""

    def next(self, rng, answers):
        """Two rounds."""
        masks = rng.integers(0, 2, (40, answers.n_features)).astype(float)
        masks[0] = 1
        masks[:, 0] = np.where(answers.n_masks, 1, masks[:, 0])
        return masks if answers.n_masks < 80 else None


class Forgetful:
    """A method that draws from a generator of its own."""

    name = "forgetful"
    rng = np.random.default_rng(0)

    def fit(self, rng, answers):
        """Noise."""
        law = eblime.laws.normal_law(self.rng.normal(size=answers.n_features), np.eye(4))
        return eblime.Posterior.from_law(law, answers, method=self.name)


@pytest.mark.parametrize(
    ("check", "part", "message"),
    [
        (testing.check_design, Always(), "needs a `Proposal`"),
        (testing.check_design, lambda rng, n, p: np.ones((n, p)), "needs a `Proposal`"),
        (testing.check_design, lambda rng, n, p: np.zeros((2, p)), "the input itself"),
        (
            testing.check_design,
            lambda rng, n, p: Proposal(masks=np.ones((n, p)), sampling_weights=-np.ones(n)),
            "`sampling_weights` must be",
        ),
        (testing.check_kernel, lambda z: 1.1 - z.mean(axis=1), "the input itself must have"),
        (testing.check_kernel, lambda z: z, "one weight per mask"),
        (testing.check_method, Forgetful(), "must give the same means"),
    ],
)
def test_parts_that_break_the_rules_are_found(check, part, message):
    """The message says what must hold."""
    with pytest.raises(AssertionError, match=message):
        check(part)
