"""Names that the documentation gives, used right after `import eblime`."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "plot.bars.compare",
        "plot.maps.posterior_maps",
        "plot.poster.poster",
        "datasets.ultrasonic.scan",
        "evaluation.scores.interval_score",
    ],
)
def test_documented_names_need_no_further_import(name):
    """In a fresh process: other tests import these modules."""
    done = subprocess.run([sys.executable, "-c", f"import eblime; eblime.{name}"], check=False)

    assert done.returncode == 0


def test_unknown_names_are_refused_as_usual():
    """A package without that module raises an AttributeError that names it."""
    import eblime

    with pytest.raises(AttributeError, match=r"'eblime.plot' has no attribute 'pie'"):
        eblime.plot.pie  # noqa: B018
    assert not hasattr(eblime, "pie")
