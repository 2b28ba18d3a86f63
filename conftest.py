"""What holds for tests and for the examples in docstrings."""

import importlib.util

import pytest

from eblime import core, domains, registry

collect_ignore = ["studies/league_shapiq.py"]  # runs with a Python that has shapiq 1.8
if importlib.util.find_spec("torch") is None:
    collect_ignore += [
        f"studies/{name}.py" for name in ("speed/image", "speed/image_gpu", "train_ultrasonic")
    ]
NEEDED = {  # packages that examples need, by name
    "eblime.models.torch.TorchModel": "torch",
    "eblime.results.export.to_shap": "shap",
}
EARLY = (core, domains)  # pytest would import their modules a second time


@pytest.fixture(autouse=True)
def own_names(monkeypatch):
    """Names that a test or an example registers end with it."""
    added = {kind: dict(names) for kind, names in registry._ADDED.items()}
    monkeypatch.setattr(registry, "_ADDED", added)


@pytest.fixture(autouse=True)
def packages(request):
    """An example that needs a package which is not installed is skipped."""
    if request.node.name in NEEDED:
        pytest.importorskip(NEEDED[request.node.name])
