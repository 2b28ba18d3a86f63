"""Rendering masks at memory speed: eight bytes of pixels at a time, in place.

A perturbed image is `hidden ^ ((shown ^ hidden) & mask)` on integer views of the pixels: no
branches, no floating point, any dtype. Eight bytes are a machine word. Nearly every word is inside
one superpixel, so its mask is one look-up; the few words on an edge are combined from the parts of
several superpixels. Images are rendered one at a time, which keeps the work in the CPU cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray

__all__ = ["Renderer", "cut_renderer"]

Words = NDArray[Any]  # unsigned integers of the largest size that divides an image's bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Renderer:
    """An image and its hidden version as words, and the superpixel of each word."""

    hidden: Words  # (planes, W)
    change: Words  # (planes, W) shown ^ hidden
    labels: NDArray[np.intp]  # (W,) superpixel of each word, or of its first byte on an edge
    edge: NDArray[np.intp]  # (E,) words that several superpixels share
    edge_labels: NDArray[np.intp]  # (K, E) the superpixels of these words
    edge_bits: Words  # (K, E) the bits of the word that belong to each superpixel

    def render(self, masks: FloatArray, out: NDArray[Any]) -> None:
        """Write one perturbed image per mask, (n, p), into `out`, (n, *image shape)."""
        word = self.hidden.dtype
        tables = np.array([0, -1]).astype(word)[(masks > 0.5).astype(np.intp)]
        bits = np.empty_like(self.hidden[0])  # the mask of one image, by word
        images = out.reshape(len(out), -1).view(word).reshape(len(out), *self.hidden.shape)
        for table, image in zip(tables, images, strict=True):
            np.take(table, self.labels, out=bits, mode="clip")
            if self.edge.size:
                parts = table[self.edge_labels] & self.edge_bits
                bits[self.edge] = np.bitwise_or.reduce(parts, axis=0)
            np.bitwise_and(self.change, bits, out=image)
            np.bitwise_xor(image, self.hidden, out=image)


def cut_renderer(shown: NDArray[Any], hidden: NDArray[Any], labels: NDArray[np.intp]) -> Renderer:
    """Cut an image for rendering; `labels` has the shape of the image, or of one of its planes."""
    planes = shown.size // labels.size
    plane_bytes = shown.nbytes // planes
    word = np.dtype(f"u{next(size for size in (8, 4, 2, 1) if plane_bytes % size == 0)}")
    narrow = labels.ravel().astype(np.int32)
    covered = np.repeat(narrow, shown.itemsize).reshape(-1, word.itemsize)
    first = covered[:, 0].astype(np.intp)
    edge = np.flatnonzero((covered != first[:, None]).any(axis=1))
    edge_labels, edge_bits = _parts(covered[edge].astype(np.intp), word)
    shown_words, hidden_words = (
        np.ascontiguousarray(pixels).reshape(-1).view(word).reshape(planes, -1)
        for pixels in (shown, hidden)
    )
    return Renderer(
        hidden=hidden_words,
        change=shown_words ^ hidden_words,
        labels=first,
        edge=edge,
        edge_labels=edge_labels,
        edge_bits=edge_bits,
    )


def _parts(covered: NDArray[np.intp], word: np.dtype[Any]) -> tuple[NDArray[np.intp], Words]:
    """The superpixels of each edge word, (E, bytes) -> (K, E), and the bits of each one."""
    labels, bits = [], []
    left = np.ones(covered.shape, dtype=bool)
    while left.any():
        first = left.argmax(axis=1)
        label = covered[np.arange(len(covered)), first]
        own = left & (covered == label[:, None])
        labels.append(label)
        bits.append((own * np.uint8(255)).astype(np.uint8).view(word).ravel())
        left &= ~own
    if not labels:
        return np.empty((0, 0), dtype=np.intp), np.empty((0, 0), dtype=word)
    return np.stack(labels), np.stack(bits)
