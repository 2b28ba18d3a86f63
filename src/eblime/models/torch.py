"""PyTorch networks, rendering on the device: the image goes over once, then only masks do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from eblime._checks import check_choice
from eblime._types import FloatArray
from eblime.models.module_locks import locked
from eblime.models.outputs import as_columns, pick_output
from eblime.protocols import Composite

if TYPE_CHECKING:
    import torch

__all__ = ["TorchModel"]


@dataclass(frozen=True, slots=True)
class TorchModel:
    """A `torch.nn.Module` that classifies or scores images.

    The network runs in eval mode and without gradients; its mode and memory layout are restored
    afterwards, also after an error or Ctrl-C. Threads may share a network: a lock for each module
    lets them explain one after the other. Training a network in another thread at the same time is
    not supported.

    Parameters
    ----------
    module
        The network: a float tensor (n, C, H, W) in, (n, outputs) out, or several outputs in a
        dictionary, a tuple or an object such as those of Hugging Face.
    preprocess
        From the images as a float32 tensor (n, C, H, W) on the device, uint8 scaled to [0, 1] and
        floats as they are, to what the network wants: a normalisation, a resize. None: nothing.
    device
        "auto" is where the network's parameters are; else a device to move it to and leave it on.
    activation
        What turns outputs into scores: "softmax", "sigmoid" or "none".
    autocast
        Run in mixed precision: faster on a GPU, about three digits of accuracy.
    output
        Name or position of the output to explain, where the network returns several. None takes
        the only one, else the one named `logits`.
    """

    module: Any
    preprocess: Callable[[Any], Any] | None = None
    device: str = "auto"
    activation: Literal["softmax", "sigmoid", "none"] = "softmax"
    autocast: bool = False
    output: str | int | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown activation and objects that are not networks."""
        check_choice("activation", self.activation, ("softmax", "sigmoid", "none"))
        if not hasattr(self.module, "parameters"):
            kind = type(self.module).__name__
            raise TypeError(f"`module` must be a torch.nn.Module; got {kind}.")

    @property
    def scales_uint8(self) -> bool:
        """Images of uint8 are divided by 255, others are not."""
        return True

    @property
    def on_gpu(self) -> bool:
        """Whether the network is on a GPU, or will be moved to one."""
        if self.device not in ("auto", "cpu"):
            return True
        first = next(self.module.parameters(), None)
        return first is not None and bool(first.device.type != "cpu")

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Score a batch of images, (n, H, W), (n, H, W, C) or (n, C, H, W)."""
        last = batch.ndim == 4 and (batch.shape[-1] <= 4 or batch.shape[1] > batch.shape[-1])
        with locked(self.module), self._ready() as device:
            import torch

            images = torch.from_numpy(np.ascontiguousarray(batch)).to(device)
            images = images[:, None] if batch.ndim == 3 else images
            images = images.permute(0, 3, 1, 2) if last else images
            return _at_home(self.score(_as_floats(images)))

    @contextmanager
    def scorer(self, scene: Composite) -> Iterator[TorchScorer]:
        """Send a scene to the device, and score masks of it there.

        The module is locked until the context is left: other threads wait for their turn.
        """
        with locked(self.module), self._ready() as device:
            import torch

            def sent(pixels: NDArray[Any]) -> Any:
                axis = scene.channel_axis
                planes = pixels[None] if axis is None else np.moveaxis(pixels, axis, 0)
                return _as_floats(torch.from_numpy(np.ascontiguousarray(planes)).to(device))

            labels = torch.from_numpy(np.ascontiguousarray(scene.labels)).to(device).ravel()
            scorer = TorchScorer(
                model=self, shown=sent(scene.shown), hidden=sent(scene.hidden), labels=labels
            )
            tensors = [*self.module.parameters(), *self.module.buffers()] if scorer.ways > 1 else []
            home = [(tensor, tensor.data) for tensor in tensors]
            try:
                yield scorer
            finally:  # the tensors themselves come back, whatever layout they were put into
                for tensor, data in home:
                    tensor.data = data

    @contextmanager
    def _ready(self) -> Iterator[Any]:
        """Put the network into eval mode on its device, without gradients; undo it afterwards."""
        import torch

        first = next(self.module.parameters(), None)
        home = torch.device("cpu") if first is None else first.device
        device = home if self.device == "auto" else torch.device(self.device)
        training = [part for part in self.module.modules() if part.training]
        precision = torch.autocast(device.type) if self.autocast else nullcontext()
        try:
            self.module.eval()
            if device != home:
                self.module.to(device)
            # Inference mode is quicker on a GPU; on a CPU the layout of the weights is changed, and
            # weights made in inference mode could not be trained again.
            with torch.inference_mode(device.type != "cpu"), torch.no_grad(), precision:
                yield device
        finally:
            for part in training:
                part.training = True

    def score(self, images: torch.Tensor) -> torch.Tensor:
        """Scores of float images on the device, (n, C, H, W) -> (n, outputs), left there."""
        returned = self.module(images if self.preprocess is None else self.preprocess(images))
        outputs: torch.Tensor = as_columns(pick_output(returned, self.output)).float()
        if self.activation == "softmax":
            if outputs.shape[1] == 1:
                raise ValueError(
                    "The softmax of one output is always 1; set activation='sigmoid' or 'none' "
                    "in TorchModel for a network with one output."
                )
            outputs = outputs.softmax(dim=1)
        elif self.activation == "sigmoid":
            outputs = outputs.sigmoid()
        else:
            outputs = outputs.clone()  # a network may use its output again
        return outputs


def _as_floats(images: torch.Tensor) -> torch.Tensor:
    """float32 images: uint8 scaled to [0, 1], others as they are."""
    import torch

    return images.float() / 255 if images.dtype == torch.uint8 else images.float()


def _at_home(scores: torch.Tensor) -> NDArray[Any]:
    """Scores as a NumPy array, waiting for the device."""
    return np.asarray(scores.cpu().numpy())


@dataclass(slots=True, kw_only=True)
class TorchScorer:
    """Scores masks of one scene on the device; on a CPU it knows two memory layouts."""

    model: TorchModel
    shown: Any  # (C, H, W) float32 on the device
    hidden: Any
    labels: Any  # (H W,)
    layout: Any = None  # memory layout that the network was last put into

    @property
    def ways(self) -> int:
        """Channels last, often the faster on a CPU, or contiguous."""
        flat = all(tensor.dim() < 5 for tensor in self.model.module.parameters())
        return 2 if self.labels.device.type == "cpu" and self.shown.shape[0] > 1 and flat else 1

    @property
    def overlaps(self) -> bool:
        """A GPU works while we fetch."""
        return bool(self.labels.device.type == "cuda")

    @property
    def sizes(self) -> Sequence[int]:
        """Batches of a few images for a CPU, of hundreds for a GPU, as far as memory allows."""
        gpu = self.overlaps
        most = (1 << 29 if gpu else 1 << 26) // (4 * self.shown.numel())
        return [n for n in ((128, 256, 512) if gpu else (4, 8, 16, 32, 64)) if n <= most] or [1]

    def launch(self, masks: FloatArray, way: int = 0) -> torch.Tensor:
        """Render on the device and score, (n, p) -> (n, outputs), without waiting for a GPU."""
        import torch

        bits = torch.from_numpy(masks > 0.5)
        if self.labels.device.type == "cuda":  # pinned memory travels without waiting
            bits = bits.pin_memory()
        bits = bits.to(self.labels.device, non_blocking=True)
        spread = bits[:, self.labels].reshape(len(masks), 1, *self.shown.shape[1:])
        images = torch.where(spread, self.shown, self.hidden)
        if self.ways > 1:
            layout = torch.channels_last if way == 0 else torch.contiguous_format
            if layout is not self.layout:
                self.model.module.to(memory_format=layout)
                self.layout = layout
            images = images.contiguous(memory_format=layout)
        return self.model.score(images)

    def fetch(self, launched: torch.Tensor) -> NDArray[Any]:
        """Wait for the device."""
        return _at_home(launched)
