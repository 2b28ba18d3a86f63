"""Settings that suit an input, or are refused before the model is asked."""

import pytest

import eblime
from eblime.engine.settings import stop_settings

TEXT = "one two three four five six seven eight nine ten eleven twelve"


def settings_for(n_features, *, exact=True, until=None, max_masks=None, **settings):
    """The settings of a text with so many words."""
    explainer = eblime.TextExplainer(len, **settings)
    scene = explainer.subject(" ".join(TEXT.split()[:n_features])).scene
    return stop_settings(explainer.loop, until, max_masks).for_input(scene, exact=exact)


@pytest.mark.parametrize(
    ("p", "n_masks"), [(1, 2), (3, 8), (10, 1024), (11, 1024), (512, 1024), (513, 2048)]
)
def test_the_usual_number_of_masks(p, n_masks):
    """All up to ten features, then whole blocks of an orthogonal array."""
    assert eblime.TextExplainer(len).loop.masks_for(p) == n_masks
    assert eblime.TextExplainer(len, n_masks=77).loop.masks_for(p) == 77


@pytest.mark.parametrize(
    ("p", "n_masks", "least"), [(2, 100, 4), (12, 100, 15), (12, 9, 10), (12, "auto", 15)]
)
def test_the_least_number_of_calls(p, n_masks, least):
    """All masks, the masks asked for and the input, or two more than a fit and the input need."""
    settings_for(p, n_masks=n_masks, calls=eblime.Calls(max_calls=least))

    with pytest.raises(ValueError, match=f"`max_calls` must be at least {least} for an input with"):
        settings_for(p, n_masks=n_masks, calls=eblime.Calls(max_calls=least - 1))


def test_a_limit_of_calls_leaves_one_for_the_input():
    """Only where the number of masks is not given, and not all masks are asked."""
    for p, calls, n_masks in ((12, 101, 100), (12, 5000, 1024), (5, 32, 32), (5, 31, 30)):
        assert settings_for(p, calls=eblime.Calls(max_calls=calls)).n_masks == n_masks
    assert settings_for(12, n_masks=500, calls=eblime.Calls(max_calls=100)).n_masks == 500


def test_a_method_takes_so_many_masks():
    """Some thousand, or all; with a stop rule the limit is lowered instead."""
    most = eblime.Quadrature().most_masks
    assert settings_for(12, method="quadrature", n_masks=most).n_masks == most
    assert settings_for(12, method="quadrature", n_masks=2**12).n_masks == 2**12
    with pytest.raises(ValueError, match=f"`n_masks` must be at most {most:,} for Quadrature"):
        settings_for(12, method="quadrature", n_masks=most + 1)
    with pytest.raises(ValueError, match="at most"):
        settings_for(12, method="quadrature", n_masks=2**12, exact=False)

    rule = {"method": "quadrature", "until": "top3"}
    assert settings_for(12, max_masks=most + 5, **rule).max_masks == most
    assert settings_for(12, max_masks=most - 5, **rule).max_masks == most - 5


def test_a_method_that_needs_the_score_with_everything_hidden():
    """Shapley values of inputs whose masks do not decide the score are refused."""
    shapley = eblime.Quadrature(index="shapley")
    settings_for(5, method=shapley)

    with pytest.raises(ValueError, match=r"needs the score with everything hidden, .* 'text'"):
        settings_for(5, method=shapley, exact=False)
