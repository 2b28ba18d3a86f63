"""Names from the documentation, used right after `import eblime`."""

import subprocess
import sys

import pytest

OTHERS = (
    "plot.maps.posterior_maps",
    "plot.poster.poster",
    "datasets.ultrasonic_network",
    "measures.stability",
)


@pytest.mark.parametrize(
    "name",
    ["plot.charts.compare", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)],
)
def test_documented_names_need_no_further_import(name):
    """In a new process, because other tests import these modules."""
    done = subprocess.run([sys.executable, "-c", f"import eblime; eblime.{name}"], check=False)

    assert done.returncode == 0


def test_unknown_name_raises_attribute_error():
    """The message names the package and the missing name."""
    import eblime

    with pytest.raises(AttributeError, match=r"'eblime.plot' has no attribute 'pie'"):
        eblime.plot.pie  # noqa: B018
    assert not hasattr(eblime, "pie")
