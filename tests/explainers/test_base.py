"""What all explainers share: settings by name, and the settings of one explanation."""

import inspect

import pytest

import eblime
from eblime.explainers.base import BaseExplainer, ExplainSettings

EXPLAINERS = [
    *(eblime.ImageExplainer, eblime.TabularExplainer, eblime.TextExplainer, eblime.Explainer),
    *(eblime.PromptExplainer, eblime.SignalExplainer, eblime.VolumeExplainer),
]


def score(texts):
    """The lengths of texts."""
    return [len(text) for text in texts]


@pytest.mark.parametrize("kind", EXPLAINERS)
def test_shared_settings_are_given_by_name(kind):
    """The model comes first, then what the explainer alone has, then the rest by name."""
    found = inspect.signature(kind).parameters
    by_name = [name for name, each in found.items() if each.kind is each.KEYWORD_ONLY]
    shared = list(inspect.signature(BaseExplainer).parameters)
    by_name = [name for name in by_name if name in shared or kind is not eblime.PromptExplainer]

    assert [shared[0], *by_name] == shared
    assert next(iter(found)) == "model"


@pytest.mark.parametrize("kind", EXPLAINERS)
@pytest.mark.parametrize(
    ("name", "ours"), [("n_samples", "n_masks"), ("seed", "rng"), ("class_names", "labels")]
)
def test_constructors_name_our_settings(kind, name, ours):
    """Those that are called otherwise in lime and shap."""
    with pytest.raises(TypeError, match=f"`{name}` is called `{ours}` in eblime"):
        kind(**{name: 1})


@pytest.mark.parametrize("kind", EXPLAINERS)
@pytest.mark.parametrize("name", ["explain", "explain_targets"])
def test_editors_list_the_settings_of_an_explanation(kind, name):
    """One by one, with their types."""
    found = inspect.signature(getattr(kind, name)).parameters
    kinds = {each: str(found[each].annotation) for each in ExplainSettings.__annotations__}

    assert kinds["max_seconds"] == "float | None"
    assert list(found)[-len(kinds) :] == list(kinds)


def test_an_unknown_setting_of_an_explanation_is_refused():
    """With the names of those that exist, before the model is called."""
    explainer = eblime.TextExplainer(lambda texts: 1 / 0)

    with pytest.raises(TypeError, match=r"`n_mask` must be .* which has n_masks, until"):
        explainer.explain("a good day", n_mask=3)


def test_a_representation_begins_with_the_settings_of_the_kind():
    """In the order in which they are given."""
    explainer = eblime.TextExplainer(score, "char", n_masks=30)

    assert repr(explainer) == "TextExplainer(model=score, tokens='char', n_masks=30)"
