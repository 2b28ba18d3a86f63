"""PyTorch networks. Images are rendered on the device: after the image only masks are sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import check_choice
from eblime._lazy import import_extra
from eblime._threads import at_fork
from eblime._types import FloatArray
from eblime.models.conversion import ACTIVATIONS, as_array, read_scores
from eblime.protocols import RenderedScene

if TYPE_CHECKING:
    import torch

    Weights = dict[str, torch.Tensor]

_COMPARED = 32  # images that are scored in both precisions
_TOLERANCE = 0.01  # how far half precision may change scores


def import_torch() -> Any:
    """Import torch, or say how to install it."""
    return import_extra("torch", "torch")


@dataclass(frozen=True, slots=True)
class TorchModel:
    """A `torch.nn.Module` that classifies or scores images, signals or volumes.

    The network runs in eval mode and without gradients; its mode and memory layout are restored
    afterwards, also after an error or Ctrl-C. Threads take turns: one network of a process runs at
    a time. Do not train it in another thread at the same time.

    Parameters
    ----------
    module
        The network: a float tensor (n, C, H, W) in, (n, outputs) out, or several outputs in a
        dictionary, a tuple or an object such as those of Hugging Face.
    preprocess
        A function of the batch before the network, such as a normalisation. It gets a float32
        tensor (n, C, H, W) on the device; uint8 images are scaled to [0, 1], and floats are passed
        as they are. None does nothing. Its result is converted to the precision of the network's
        parameters, such as float16.
    device
        "auto" uses the device of the network's parameters; otherwise the network is moved to this
        device and stays there.
    activation
        Turns outputs into scores: "softmax", "sigmoid" or "none". "auto" is a softmax, unless the
        outputs of the first batch are probabilities already (none is negative, and each row sums to
        1) or there is only one. The provenance says what was applied. "softmax" leaves
        probabilities as they are, too, with a warning.
    precision
        "full" is that of the parameters. "half" runs the network in half precision (float16, on a
        CPU bfloat16), which is accurate to about three digits and faster on a GPU. "auto" does so
        for images and volumes on a GPU if that changes the scores of the first masks, by root mean
        square, by at most a hundredth of their range and of the largest. The prediction itself
        stays in full precision, and the provenance says what was used.
    output
        Name or position of the output to explain, for a network with several outputs. None takes
        the only one, or the one named `logits`.
    as_is
        Whether the network gets batches in the layout that they have, such as signals (n, C, T),
        rather than as images.
    reader
        A function from what the network returned for n images, and n, to scores, (n, outputs),
        instead of `activation`; set for the targets in `eblime.scores`.

    Examples
    --------
    A network that returns the mean of each colour:

    >>> import numpy as np
    >>> import torch
    >>> import eblime
    >>> network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    >>> model = eblime.TorchModel(network, preprocess=lambda x: 2 * x - 1, activation="none")
    >>> flag = np.zeros((8, 8, 3), dtype=np.uint8)
    >>> flag[:, 4:, 0] = 255  # the right half is red
    >>> model(flag[None])
    array([[ 0., -1., -1.]], dtype=float32)
    >>> halves = ("grid", {"rows": 1, "columns": 2})
    >>> e = eblime.ImageExplainer(model, segmentation=halves, hide=0).explain(flag, target=0)
    >>> e.posterior.mean.round(2) + 0.0
    array([0., 1.])
    """

    module: torch.nn.Module
    preprocess: Callable[[Any], object] | None = None
    device: str = "auto"
    activation: Literal["auto", "softmax", "sigmoid", "none"] = "auto"
    precision: Literal["auto", "full", "half"] = "auto"
    output: str | int | None = None
    as_is: bool = False
    reader: Callable[[Any, int], ArrayLike] | None = None
    decided: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    scales_uint8: ClassVar[bool] = True  # uint8 images are divided by 255, others are not

    def __post_init__(self) -> None:
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("precision", self.precision, ("auto", "full", "half"))
        if not isinstance(self.module, import_torch().nn.Module):
            kind = type(self.module).__name__
            raise TypeError(f"`module` must be a torch.nn.Module; got {kind}.")
        if self.device != "auto":
            _device(self.device)

    @property
    def on_gpu(self) -> bool:
        """Whether the network is on a GPU, or will be moved to one."""
        first = next(self.module.parameters(), None)
        home = "cpu" if first is None else first.device.type
        return (home if self.device == "auto" else self.device) != "cpu"

    def __call__(self, batch: object) -> np.ndarray:
        """Score a batch of images, (n, H, W), (n, H, W, C) or (n, C, H, W), or of rows, (n, d).

        A network with weights of five axes gets volumes, with one axis more.
        """
        with evaluation(self.module, self.device) as device:
            images = _to_tensor(as_array(batch)).to(device)
            axes = 5 if _has_3d_weights(self.module) else 4
            if self.as_is or images.ndim < 3:
                images = images.float()
            else:
                many = images.shape[-1] > 4 and images.shape[1] <= images.shape[-1]
                images = images if images.ndim < axes or many else images.movedim(-1, 1)
                images = _as_floats(images if images.ndim == axes else images[:, None])
            weights = half_weights(self.module, device) if self.precision == "half" else None
            return np.asarray(self.score(images.contiguous(), weights).cpu().numpy())

    @contextmanager
    def scorer(self, scene: RenderedScene) -> Iterator[TorchScorer]:
        """Send a scene to the device, and score its masks there; other threads wait."""
        with evaluation(self.module, self.device) as device:
            yield TorchScorer(self, scene, device)

    def score(self, images: torch.Tensor, weights: Weights | None = None) -> torch.Tensor:
        """Scores of float images, (n, C, H, W) -> (n, outputs); both are on the device.

        `weights` replace the parameters and buffers of the network.
        """
        import torch

        images = images if self.preprocess is None else self.preprocess(images)
        if weights is None:
            returned = self.module(_in_precision(images, self.module.parameters()))
        else:
            images = _in_precision(images, weights.values())
            call = torch.func.functional_call
            returned = call(self.module, weights, (images,), tie_weights=False)
        scores = read_scores(self, returned, len(images))
        return torch.as_tensor(scores, device=images.device).float()


@contextmanager
def evaluation(module: torch.nn.Module, device: str = "auto") -> Iterator[torch.device]:
    """Set eval mode and turn gradients off, on the right device; restore the mode on exit.

    Yields the device. Other threads wait until the context ends; a thread may enter twice.
    """
    import torch

    with _lock:
        first = next(module.parameters(), None)
        home = torch.device("cpu") if first is None else first.device
        there = home if device == "auto" else _device(device, used=True)
        training = [part for part in module.modules() if part.training]
        try:
            if training:
                module.eval()
            if there != home:
                module.to(there)
            # Inference mode is faster on a GPU. It is not used on a CPU, where the layout of the
            # weights changes: weights created in inference mode cannot be trained.
            with torch.inference_mode(there.type != "cpu"), torch.no_grad():
                yield there
        finally:
            for part in training:
                part.training = True


def _device(name: object, *, used: bool = False) -> torch.device:
    """The device of this name; it must exist here only when it is used: workers may have it."""
    import torch

    try:
        device = torch.device(name)
        if used:
            torch.empty(0, device=device)
    except (AssertionError, NotImplementedError, RuntimeError, TypeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(
            f"`device` must be 'auto' or a device that torch has here; got {name!r}: {reason}."
        ) from error
    return device


def _as_floats(images: torch.Tensor) -> torch.Tensor:
    """Images as float32: uint8 scaled to [0, 1], others not scaled."""
    import torch

    return images.float() / 255 if images.dtype == torch.uint8 else images.float()


def _in_precision(images: torch.Tensor, weights: Iterable[torch.Tensor]) -> torch.Tensor:
    """Floats in the precision of the first weight that has one, such as float16 or float64."""
    import torch

    kinds = (tensor.dtype for tensor in weights if tensor.is_floating_point())
    floats = isinstance(images, torch.Tensor) and images.is_floating_point()
    return images.to(next(kinds, images.dtype)) if floats else images


def half_weights(module: torch.nn.Module, device: torch.device, layout: Any = None) -> Weights:
    """The parameters and buffers of a network in half precision, those of images in a layout."""
    import torch

    kind = torch.float16 if device.type == "cuda" else torch.bfloat16
    found = {}
    every = module.named_parameters(remove_duplicate=False)  # also those that are tied
    for name, tensor in [*every, *module.named_buffers(remove_duplicate=False)]:
        if tensor.is_floating_point():
            form = layout if tensor.ndim == 4 and layout else torch.preserve_format
            tensor = tensor.to(kind, memory_format=form)
        found[name] = tensor
    return found


def _to_tensor(array: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(np.require(array, requirements=["C", "W"]))


def _has_3d_weights(module: torch.nn.Module) -> bool:
    from torch.nn.parameter import is_lazy

    return any(not is_lazy(weight) and weight.dim() > 4 for weight in module.parameters())


def _renderer(scene: RenderedScene) -> Callable[[FloatArray], torch.Tensor]:
    """A function from masks, (n, p), to float32 images in main memory, (n, C, H, W).

    In the layout and dtype of the scene, which is several times as fast as `torch.where`.
    """
    axis, renderer = scene.channel_axis, scene.renderer()

    def render(masks: FloatArray) -> torch.Tensor:
        batch = scene.batch(len(masks))
        renderer.render(masks, batch)
        images = _to_tensor(batch)
        return _as_floats(images[:, None] if axis is None else images.movedim(axis + 1, 1))

    return render


def _renderer_on(
    device: torch.device, scene: RenderedScene
) -> Callable[[FloatArray], torch.Tensor]:
    """The same on a GPU, which gets the image once, and then masks only."""
    import torch

    axis = scene.channel_axis

    def send(pixels: np.ndarray) -> torch.Tensor:
        sent = _to_tensor(pixels).to(device)
        return _as_floats(sent[None] if axis is None else sent.movedim(axis, 0))

    shown, hidden = send(scene.shown), send(scene.hidden)
    labels = _to_tensor(scene.labels).to(device).ravel()

    def render(masks: FloatArray) -> torch.Tensor:
        bits = torch.from_numpy(masks > 0.5)
        if device.type == "cuda":  # pinned memory is copied without waiting
            bits = bits.pin_memory()
        bits = bits.to(device, non_blocking=True)
        by_pixel = bits[:, labels].reshape(len(masks), 1, *shown.shape[1:])
        return torch.where(by_pixel, shown, hidden)

    return render


class TorchScorer:
    """Scores masks of one scene on the device.

    Attributes
    ----------
    overlaps
        Whether batches may overlap: True on a GPU.
    sizes
        Batches of a few images for a CPU, of hundreds for a GPU, limited by memory.
    """

    def __init__(self, model: TorchModel, scene: RenderedScene, device: torch.device) -> None:
        import torch

        self._model, self._device = model, device
        self._weights: Weights | None = None  # in half precision, if that is chosen
        self.about: dict[str, str] = {}  # says which precision
        self._render = _renderer(scene) if device.type == "cpu" else _renderer_on(device, scene)
        self.overlaps = device.type == "cuda"
        most = (1 << 29 if self.overlaps else 1 << 26) // (4 * scene.shown.size)
        sizes = [n for n in ((256, 512) if self.overlaps else (4, 8, 16, 32, 64)) if n <= most]
        self.sizes: Sequence[int] = sizes or [max(1, most)]
        grey = scene.channel_axis is None or scene.shown.shape[scene.channel_axis] == 1
        flat = scene.labels.ndim == 2 and not _has_3d_weights(model.module)
        last = flat and not grey and device.type in ("cpu", "cuda")
        # channels last is faster, whatever the layout of the weights
        self._layout = torch.channels_last if last else torch.contiguous_format

    def launch(self, masks: FloatArray) -> np.ndarray | ScoresOnTheWay:
        """Render on the device and score, (n, p) -> (n, outputs), without waiting for a GPU."""
        import torch

        images = self._render(masks)
        scores = self._score(images) if self.about else self._score_first(images)
        if not self.overlaps:
            return np.asarray(scores.cpu().numpy())
        copy = torch.empty(scores.shape, dtype=scores.dtype, pin_memory=True)
        copy.copy_(scores, non_blocking=True)
        return ScoresOnTheWay(copy, torch.cuda.current_stream(self._device).record_event())

    def _score_first(self, images: torch.Tensor) -> torch.Tensor:
        """Choose the precision; the first images, such as the input itself, have the full one."""
        import torch

        model, chosen = self._model, str(self._model.precision)
        if chosen == "auto" and not _may_be_half(model.module, self._device):
            chosen = "full"
        if chosen == "full":
            self.about["precision"] = chosen
            return self._score(images)
        few = images[: {"auto": _COMPARED, "half": 1}[chosen]]
        exact = self._score(few)
        self._weights = half_weights(model.module, self._device, self._layout)
        try:
            rest = self._score(images)  # all, so that the GPU has work while they are compared
            if chosen == "auto":
                chosen = _compare(exact, rest[: len(few)])
        except RuntimeError as error:
            if chosen == "half":
                raise
            chosen = f"full (half failed: {str(error).partition(chr(10))[0]:.80})"
        if chosen != "half":
            self._weights = None
            rest = self._score(images)
        self.about["precision"] = chosen
        return torch.cat([exact, rest[len(few) :]])

    def _score(self, images: torch.Tensor) -> torch.Tensor:
        """Scores of images, in the layout that the network takes."""
        import torch

        try:
            return self._model.score(images.contiguous(memory_format=self._layout), self._weights)
        except RuntimeError:
            if self._layout is torch.contiguous_format:
                raise
            scores = self._model.score(images.contiguous(), self._weights)
            self._layout = torch.contiguous_format  # which a network with `view` needs
            return scores


def _compare(exact: torch.Tensor, rounded: torch.Tensor) -> str:
    """The precision to use, given scores (n, outputs) in both: half, or full with the reason.

    The spread of the changes is compared with the range of the scores, since a change that is the
    same for all images moves no importance, and their root mean square with the largest score, for
    the ten highest outputs of the first image, which is the input itself.
    """
    top = exact[0].topk(min(10, exact.shape[1])).indices
    exact, moved = exact[:, top], (rounded - exact)[:, top]
    span = (exact.amax(0) - exact.amin(0)).square().sum().sqrt()
    change = moved.var(0, correction=0).sum().sqrt()
    level = moved.square().mean(0).max().sqrt()
    if change <= _TOLERANCE * span and level <= _TOLERANCE * exact.abs().max():
        return "half"
    return f"full (half changes scores by {float(change):.1g}, their range is {float(span):.1g})"


def _may_be_half(module: Any, device: torch.device) -> bool:
    """Whether half precision is worth a try: for parameters in single precision on a GPU."""
    kind = getattr(next(module.parameters(), None), "dtype", None)
    return device.type == "cuda" and str(kind) == "torch.float32"


@dataclass(frozen=True, slots=True)
class ScoresOnTheWay:
    """Scores that a GPU copies to main memory when it has computed them.

    Reading them waits for this batch alone. A copy that begins later would wait for the batches
    that were launched in the meantime, and the GPU would then wait for the next one.
    """

    scores: torch.Tensor  # in pinned memory
    ready: torch.cuda.Event

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        """All scores, when they have arrived."""
        self.ready.synchronize()
        return np.asarray(self.scores.numpy(), *args, **options)


_lock = threading.RLock()  # networks may share submodules, whose mode changes


def _reset() -> None:
    """Start with a free lock in a forked child: the thread that held it does not exist there."""
    global _lock
    _lock = threading.RLock()


at_fork(after_in_child=_reset)
