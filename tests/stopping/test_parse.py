"""Stop rules from text."""

import pytest

import eblime
from eblime.stopping.rules import as_rule, parse_rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("top5", eblime.TopK(5)),
        ("Top 5", eblime.TopK(5)),
        ("top3@0.99", eblime.TopK(3, prob=0.99)),
        ("ranking3", eblime.Ranking(3)),
        ("sign", eblime.Sign()),
        ("sign3", eblime.Sign(top=3)),
        ("width0.05", eblime.Width(0.05)),
        ("width10%", eblime.Width(0.1, relative=True)),
        ("top5 & width10%", eblime.TopK(5) & eblime.Width(0.1, relative=True)),
        ("top5 and sign3", eblime.TopK(5) & eblime.Sign(top=3)),
        ("top5|sign3", eblime.TopK(5) | eblime.Sign(top=3)),
        ("top5 or sign3 and top1", eblime.TopK(5) | eblime.Sign(top=3) & eblime.TopK(1)),
    ],
)
def test_texts_are_rules(text, rule):
    """Every form that `--until` takes."""
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    "text",
    ["", "best5", "top", "top5%", "top0", "top2.5", "width", "top5 &", "top5@2", "width1.2.3"],
)
def test_bad_texts_are_refused(text):
    """The message says what is allowed, or which number is wrong."""
    with pytest.raises(ValueError, match=r"`until` must|`k` must|`prob` must"):
        parse_rule(text)


def test_functions_are_rules_too():
    """Any function of (posterior, answers) is left as it is; other objects are refused."""

    def enough(posterior, answers):
        return None

    assert as_rule(enough) is enough
    with pytest.raises(TypeError, match="`until` must be a rule"):
        as_rule(3)
    with pytest.raises(TypeError, match="`until` must be a rule"):
        as_rule(eblime.TopK)
