"""Names from the documentation, used right after `import eblime`."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import eblime

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
    with pytest.raises(AttributeError, match=r"'eblime.plot' has no attribute 'pie'"):
        eblime.plot.pie  # noqa: B018
    assert not hasattr(eblime, "pie")


def imported_from_zip(folder, *names):
    """What Python prints that imports eblime from an archive with some of its files."""
    with zipfile.ZipFile(folder / "house.zip", "w") as archive:
        for name in names:
            archive.write(Path(eblime.__file__).parent / name, f"eblime/{name}")
    code = f"import sys; sys.path.insert(0, {str(folder / 'house.zip')!r}); import eblime; "
    code += "print(eblime.__file__, eblime.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_zipped_package_finds_its_names(tmp_path):
    """The list of names is read through the loader of the package."""
    printed = imported_from_zip(tmp_path, "__init__.py", "__init__.pyi", "_lazy.py", "_version.py")

    assert "house.zip" in printed
    assert printed.split()[-1] == eblime.__version__
