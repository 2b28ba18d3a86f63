import pickle
import re
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime

torch = pytest.importorskip("torch")

from eblime.models.torch import _compare  # noqa: E402  needs torch

IMAGE = np.random.default_rng(0).integers(0, 256, size=(24, 32, 3), dtype=np.uint8)


def network(outputs=5, channels=3):
    """A small convolutional network with parts that differ between training and inference."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(channels, 8, 3),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(32, outputs),
    )


def explain(model, image=IMAGE, **settings):
    """A quick explanation."""
    defaults = {"segmentation": "grid", "hide": 0, "n_masks": 60}
    return eblime.ImageExplainer(model, **{**defaults, **settings}).explain(image, target=0)


def test_arrays_that_cannot_be_written_are_scored_without_a_warning():
    """By default PyTorch warns only once per process, so the test makes it warn every time."""
    batch = IMAGE[None].copy()
    batch.setflags(write=False)
    torch.set_warn_always(True)
    try:
        assert eblime.TorchModel(network())(batch).shape == (1, 5)
    finally:
        torch.set_warn_always(False)


@pytest.mark.parametrize("layout", ["last", "first", "grey", "float"])
def test_rendering_on_the_device_equals_rendering_with_numpy(layout):
    """The scores of masks equal the scores of images rendered with NumPy."""
    image = {
        "last": IMAGE,
        "first": IMAGE.transpose(2, 0, 1),
        "grey": IMAGE[..., 0],
        "float": (IMAGE / 255).astype(np.float32),
    }[layout]
    net = network(channels=1 if layout == "grey" else 3)
    model = eblime.TorchModel(module=net)
    through_batches = explain(lambda batch: model(batch), image)
    on_device = explain(model, image)

    assert_array_equal(on_device.masks, through_batches.masks)
    assert_allclose(on_device.scores, through_batches.scores, atol=1e-6)


@pytest.mark.parametrize("layout", ["last", "first", "grey", "float"])
def test_a_gpu_renders_what_a_cpu_renders(layout):
    """The two ways to render give the same bits."""
    import torch

    from eblime.models.torch import _renderer, _renderer_on

    image = {
        "last": IMAGE,
        "first": IMAGE.transpose(2, 0, 1),
        "grey": IMAGE[..., 0],
        "float": (IMAGE / 255).astype(np.float32),
    }[layout]
    scene = eblime.ImageExplainer(lambda batch: batch[:, 0, 0]).subject(image).scene
    masks = np.random.default_rng(0).integers(0, 2, size=(5, scene.n_features)).astype(float)
    here, there = _renderer(scene)(masks), _renderer_on(torch.device("cpu"), scene)(masks)

    assert here.dtype == there.dtype == torch.float32
    assert_array_equal(here.numpy(), there.numpy())


def test_a_network_that_needs_contiguous_arrays_is_explained():
    """`view` fails in the layout that is tried first; the weights keep their layout."""
    import torch

    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Conv2d(3, 4, 3), torch.nn.LazyLinear(2)

        def forward(self, images):
            found = self.first(images)
            return self.last(found.view(len(found), -1))

    net = Flat()
    model = eblime.TorchModel(net)
    through_batches = explain(lambda batch: model(batch), IMAGE)
    on_device = explain(model, IMAGE)

    assert_allclose(on_device.scores, through_batches.scores, atol=1e-6)
    assert net.first.weight.is_contiguous()


def test_scores_on_their_way_from_a_gpu_are_read_once_they_have_arrived():
    """Reading waits for this batch, and for no other one."""
    import torch

    from eblime.models.conversion import as_scores
    from eblime.models.torch import ScoresOnTheWay

    class Arrival:
        def synchronize(self):
            scores.copy_(torch.arange(6.0).reshape(2, 3))

    scores = torch.full((2, 3), torch.nan)
    launched = ScoresOnTheWay(scores, Arrival())

    assert_array_equal(as_scores(launched), [[0, 1, 2], [3, 4, 5]])


def test_outputs_become_scores():
    """Softmax, sigmoid or none, after the preprocessing."""
    net = network()
    images = torch.from_numpy(IMAGE[None].transpose(0, 3, 1, 2)).float()
    net.eval()
    with torch.no_grad():
        logits = net((images / 255 - 0.5) / 0.2)
    for activation, expected in (
        ("softmax", logits.softmax(dim=1)),
        ("sigmoid", logits.sigmoid()),
        ("none", logits),
    ):
        model = eblime.TorchModel(
            module=net, preprocess=lambda x: (x - 0.5) / 0.2, activation=activation
        )
        assert_allclose(model(IMAGE[None]), expected.numpy(), rtol=1e-5)


def test_a_plain_module_is_wrapped():
    """`ImageExplainer(module)` works, with softmax and the module's device."""
    scores = explain(network()).scores

    assert ((scores > 0) & (scores < 1)).all()


def test_mode_gradients_and_layout_are_restored():
    """For a network that is partly in eval mode, also after Ctrl-C."""
    net = network()
    net.train()
    net[1].eval()
    before = [part.training for part in net.modules()]
    strides = [parameter.stride() for parameter in net.parameters()]

    def interrupt(done, total):
        if done > 20:
            raise KeyboardInterrupt

    explainer = eblime.ImageExplainer(net, segmentation="grid", hide=0, n_masks=60)
    first = explainer.explain(IMAGE, target=1)
    with pytest.raises(KeyboardInterrupt):
        eblime.ImageExplainer(
            net, segmentation="grid", hide=0, n_masks=60, progress=interrupt
        ).explain(IMAGE)

    assert [part.training for part in net.modules()] == before
    assert [parameter.stride() for parameter in net.parameters()] == strides
    assert torch.is_grad_enabled()
    assert all(parameter.requires_grad for parameter in net.parameters())
    assert_allclose(explainer.explain(IMAGE, target=1).scores, first.scores, atol=1e-6)


def test_a_network_can_be_trained_afterwards():
    """Weights keep their memory and layout, and take gradients."""
    for layout in (torch.contiguous_format, torch.channels_last):
        net = network().to(memory_format=layout).train()
        pointers = [parameter.data_ptr() for parameter in net.parameters()]
        explain(net)
        net(torch.rand(4, 3, 16, 16)).sum().backward()

        assert [parameter.data_ptr() for parameter in net.parameters()] == pointers
        assert net[0].weight.is_contiguous(memory_format=layout)
        assert net[0].weight.grad is not None


def test_a_missing_device_leaves_the_network_unchanged():
    """The mode is restored also if the move fails."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    net = network().train()
    with pytest.raises(ValueError, match=r"torch has here; got 'cuda': .*\.$"):
        explain(eblime.TorchModel(net, device="cuda"))

    assert net.training


@pytest.mark.parametrize("device", ["gpu", "cuda:one", "", None])
def test_the_name_of_a_device_is_checked_when_the_model_is_created(device):
    """The message says which there are."""
    with pytest.raises(ValueError, match=r"`device` must be 'auto' or .* torch has here"):
        eblime.TorchModel(network(), device=device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_probabilities_get_no_other_softmax(dtype):
    """Those of a network that ends in one; only "softmax" warns. The provenance says so."""
    net = torch.nn.Sequential(network(), torch.nn.Softmax(dim=1)).to(dtype)
    model = eblime.TorchModel(net, activation="softmax")
    wanted = eblime.TorchModel(net, activation="none")(IMAGE[None])

    for made in (model, pickle.loads(pickle.dumps(model))):
        with pytest.warns(UserWarning, match=r"probabilities already.*activation='none' in Torch"):
            assert_allclose(made(IMAGE[None]), wanted)
        assert_allclose(made(IMAGE[None]), wanted)  # without another warning
    e = explain(net)
    assert_allclose(e.scores, explain(eblime.TorchModel(net, activation="none")).scores, atol=1e-6)
    assert e.provenance["input"]["activation"] == "none"
    assert explain(network()).provenance["input"]["activation"] == "softmax"


def test_probabilities_of_several_labels_need_a_word():
    """They are between 0 and 1 as small logits may be, and do not sum to 1: a warning says so."""
    labels = torch.nn.Sequential(network(), torch.nn.Sigmoid())
    with pytest.warns(UserWarning, match=r"do not sum to 1.*activation='none' in TorchModel"):
        eblime.TorchModel(labels)(IMAGE[None])

    for activation in ("none", "softmax"):
        model = eblime.TorchModel(labels, activation=activation)
        model(IMAGE[None])
        assert model.decided == {"activation": activation}


def test_the_softmax_of_log_probabilities_is_taken():
    """They are not probabilities."""
    net = network()
    logs = torch.nn.Sequential(net, torch.nn.LogSoftmax(dim=1))

    assert_allclose(eblime.TorchModel(logs)(IMAGE[None]), eblime.TorchModel(net)(IMAGE[None]))


def test_the_first_batch_decides_about_the_softmax():
    """A later one that happens to look like probabilities is no exception."""
    model = eblime.TorchModel(torch.nn.Identity())
    first, later = np.array([[-1.0, 3.0]], np.float32), np.array([[0.25, 0.75]], np.float32)
    model(first)

    assert_allclose(model(later), torch.from_numpy(later).softmax(dim=1).numpy())


def test_objects_that_are_not_modules_are_refused():
    """When the model is created, also if they have parameters."""
    with pytest.raises(TypeError, match=r"`module` must be a torch.nn.Module; got function"):
        eblime.TorchModel(lambda x: x)
    with pytest.raises(TypeError, match=r"`module` must be a torch.nn.Module; got SimpleNamespace"):
        eblime.TorchModel(SimpleNamespace(parameters=list))


def test_the_batch_size_does_not_change_the_scores():
    """Up to rounding."""
    net = network()
    scores = [explain(net, calls=eblime.Calls(batch_size=size)).scores for size in (1, 7, 60, None)]

    for other in scores[1:]:
        assert_allclose(other, scores[0], atol=1e-6)


def test_half_precision_is_close():
    """To about two digits; the prediction is that of full precision."""
    full = explain(eblime.TorchModel(module=network()))
    half = explain(eblime.TorchModel(module=network(), precision="half"))

    assert_allclose(half.scores, full.scores, atol=0.02)
    assert not np.array_equal(half.scores, full.scores)
    assert half.prediction == full.prediction
    assert half.provenance["input"]["precision"] == "half"


def test_half_precision_leaves_the_network_as_it_is():
    """Its weights are copied, and a batch of arrays is scored in half precision too."""
    net = network()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    batch = np.random.default_rng(0).random((3, 8, 8, 3), dtype=np.float32)
    half = eblime.TorchModel(net, precision="half")(batch)

    assert_allclose(half, eblime.TorchModel(net)(batch), atol=0.02)
    assert not np.array_equal(half, eblime.TorchModel(net)(batch))
    for name, tensor in net.state_dict().items():
        assert tensor.dtype == before[name].dtype
        assert torch.equal(tensor, before[name])


@pytest.fixture
def like_a_gpu(monkeypatch):
    """Half precision is worth a try on this CPU."""
    monkeypatch.setattr("eblime.models.torch._may_be_half", lambda module, device: True)


def test_half_precision_is_chosen_if_it_changes_little(like_a_gpu, monkeypatch):
    """The first masks are scored in both precisions; their scores are those of the full one."""
    monkeypatch.setattr("eblime.models.torch._TOLERANCE", 0.5)
    full = explain(eblime.TorchModel(module=network(), precision="full"))
    auto = explain(eblime.TorchModel(module=network()))

    assert auto.provenance["input"]["precision"] == "half"
    assert auto.prediction == full.prediction
    assert not np.array_equal(auto.scores, full.scores)


def test_full_precision_is_kept_if_half_changes_much(like_a_gpu, monkeypatch):
    """The provenance says by how much."""
    monkeypatch.setattr("eblime.models.torch._TOLERANCE", 1e-6)
    full = explain(eblime.TorchModel(module=network(), precision="full"))
    auto = explain(eblime.TorchModel(module=network()))

    assert re.fullmatch(
        r"full \(half changes scores by .*, their range is .*\)",
        auto.provenance["input"]["precision"],
    )
    assert_allclose(auto.scores, full.scores, rtol=1e-6)


class Single(torch.nn.Module):
    """A network that does not run in half precision: it overflows, or refuses it."""

    def __init__(self, wrong):
        super().__init__()
        self.net, self.wrong = network(), wrong

    def forward(self, x):
        """The scores, in single precision."""
        if x.dtype == torch.bfloat16 and self.wrong == "refuses":
            raise RuntimeError("not implemented for 'BFloat16'")
        return self.net(x) * (float("nan") if x.dtype == torch.bfloat16 else 1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("refuses", "full (half failed: not implemented for 'BFloat16')"),
        ("overflows", "full (half changes scores by nan, their range is 0.009)"),
    ],
)
def test_networks_that_do_not_run_in_half_precision_are_explained(like_a_gpu, wrong, said):
    """In full precision; with "half" the error is shown."""
    e = explain(Single(wrong))

    assert e.provenance["input"]["precision"] == said
    exact = explain(eblime.TorchModel(network(), precision="full"))
    assert_allclose(e.scores, exact.scores, rtol=1e-6)
    with pytest.raises(eblime.ModelError):
        explain(eblime.TorchModel(Single(wrong), precision="half"))


def test_constant_scores_do_not_choose_full_precision():
    """Scores that neither precision moves are the same in both."""
    same = torch.ones(4, 3)

    assert _compare(same, same) == "half"
    assert _compare(same, same * 1.1).startswith("full")


def test_one_output_needs_a_sigmoid():
    """The softmax of one output is always 1; the message says what to set. "auto" is none."""
    with pytest.raises(eblime.ModelError, match=r"to 'sigmoid' or 'none' in TorchModel"):
        explain(eblime.TorchModel(network(outputs=1), activation="softmax"))
    assert explain(network(outputs=1)).provenance["input"]["activation"] == "none"
    model = eblime.TorchModel(module=network(outputs=1), activation="sigmoid")
    assert explain(model).label == "output"


@pytest.mark.parametrize("precision", [torch.float64, torch.bfloat16])
def test_images_have_the_precision_of_the_network(precision):
    """A network in double or half precision gets images of its own precision."""
    net = network()
    expected = explain(net)
    found = explain(net.to(precision))

    assert_allclose(found.scores, expected.scores, atol=0.02)


class Several(torch.nn.Module):
    """Returns several outputs, combined by a function."""

    def __init__(self, combine):
        super().__init__()
        self.net, self.other, self.combine = network(), network(outputs=2), combine

    def forward(self, x):
        """Both networks' outputs."""
        return self.combine(self.net(x), self.other(x))


@dataclass
class Output:
    """Like the outputs of Hugging Face models."""

    loss: object = None
    logits: object = None
    hidden_states: object = None


Pair = namedtuple("Pair", ["scores", "features"])


@pytest.mark.parametrize(
    ("combine", "output"),
    [
        (lambda a, b: {"scores": a, "features": b}, "scores"),
        (lambda a, b: {"scores": a}, None),  # the only one
        (lambda a, b: {"features": b, "logits": a}, None),  # known by its name
        (lambda a, b: Output(logits=a, hidden_states=(b,)), None),
        (lambda a, b: Output(logits=a, hidden_states=(b,)), "logits"),
        (lambda a, b: Pair(a, b), "scores"),
        (lambda a, b: Pair(None, a), None),  # an output that is None does not count
        (lambda a, b: (b, a), 1),
        (lambda a, b: [a], None),
    ],
)
def test_one_of_several_outputs_is_chosen(combine, output):
    """By name or position; by default the only one or the one named `logits`."""
    net = Several(combine).eval()
    scores = eblime.TorchModel(net, output=output)(IMAGE[None])

    assert_allclose(scores, eblime.TorchModel(net.net)(IMAGE[None]), atol=1e-6)


def test_several_outputs_without_a_choice_are_refused():
    """The message lists the names and shapes."""
    named = Several(lambda a, b: {"scores": a, "features": b})
    unnamed = Several(lambda a, b: (a, b))
    listed = r"returns 2 outputs: 'scores' of shape \(\d+, 5\), 'features' of shape \(\d+, 2\)"
    with pytest.raises(eblime.ModelError, match=listed + r".* output='scores'; got None"):
        explain(named)
    with pytest.raises(eblime.ModelError, match=listed + r".*; got 'logits'"):
        explain(eblime.TorchModel(named, output="logits"))
    with pytest.raises(eblime.ModelError, match=r"2 outputs: 0 of shape .* such as output=0"):
        explain(unnamed)
    with pytest.raises(eblime.ModelError, match=r"got 2"):
        explain(eblime.TorchModel(unnamed, output=2))
    with pytest.raises(eblime.ModelError, match=r"got 'hidden_states'"):
        explain(eblime.TorchModel(Several(lambda a, b: Output(a, a, (b,))), output="hidden_states"))


def test_maps_of_scores_are_refused():
    """One score per class and pixel is not one score per output; axes of size 1 are dropped."""
    pixels = torch.nn.Conv2d(3, 5, 3)
    pooled = torch.nn.Sequential(pixels, torch.nn.AdaptiveAvgPool2d(1))
    with pytest.raises(
        eblime.ModelError,
        match=r"shape \(n, outputs\); it returned shape \(\d+, 5, 22, 30\)\..*scores\.Region",
    ):
        explain(pixels)

    assert eblime.TorchModel(pooled)(IMAGE[None]).shape == (1, 5)


def test_unknown_activation_is_refused():
    """The message lists the known ones."""
    with pytest.raises(ValueError, match=r"`activation` must be one of 'auto', 'softmax'"):
        eblime.TorchModel(module=network(), activation="relu")
