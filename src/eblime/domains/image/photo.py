"""Reading photos: the one way from a file or a PIL image to pixels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from eblime._checks import as_floats, check_count
from eblime._warn import warn_user
from eblime.domains.readers import read_dicom, read_file

if TYPE_CHECKING:
    from PIL import Image

# Only these formats are read, whatever a file is called: for others, such as EPS, Pillow would
# start another program.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_ENDINGS = ("bmp", "dcm", "gif", "jpeg", "jpg", "png", "ppm", "tif", "tiff", "webp")
PHOTO_ENDINGS = tuple(f".{ending}" for ending in _ENDINGS)

_MOST_PIXELS = 100_000_000  # of a photo in a file, by its header


def is_photo(source: object) -> bool:
    """Whether `source` is a path, an open file or a PIL image."""
    return isinstance(source, (str, os.PathLike)) or hasattr(source, "read") or _is_pil(source)


def open_photo(source: Any, name: str | None = None) -> Image.Image:
    """Read one photo as a PIL image: upright, in grey or RGB, transparent parts on white.

    Grey photos keep their depth (modes "1", "L", "I", "I;16" and "F"). The source is a path, an
    open file or a PIL image; DICOM files need pydicom. `name` is that in error messages. A photo
    that cannot be read, has several pages, or more than 100 million pixels is refused.
    """
    from PIL import Image

    name = _name(source) if name is None else repr(name)
    if _is_pil(source):
        return _upright(source, name)
    if isinstance(source, (str, os.PathLike)) and str(source).lower().endswith(".dcm"):
        return _from_dicom(Path(source), name)
    try:
        with Image.open(source, formats=_FORMATS) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                raise ValueError(
                    f"{name} must have at most {_MOST_PIXELS / 1e6:g} million pixels; it has "
                    f"{opened.width} x {opened.height}. Read a part of it or a smaller copy with "
                    "another package, and pass the array."
                )
            return _upright(opened, name)
    except FileNotFoundError:
        raise
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(
            f"{name} cannot be read: {error}. Supported formats are {', '.join(_FORMATS)}; read "
            "others with another package, and pass the array."
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """The pixels of an image, and in words what was done to them when they were read."""

    pixels: np.ndarray
    about: Mapping[str, str]  # for the provenance


def read_photo(
    source: object,
    size: tuple[int, int, int] | None = None,
    name: str | None = None,
    fit: str = "pad",
    *,
    bits: int | None = None,
    window: Sequence[float] | None = None,
    floats: bool = False,
) -> Picture:
    """Read one photo in a model's size, with pixels of 8 bits.

    Parameters
    ----------
    source, name
        See `open_photo`.
    size
        (height, width, channels), with 1 or 3 channels; 0 x 0 keeps the photo's size, and None
        too, in RGB.
    fit
        How a photo of another shape gets that size: "crop" keeps its middle, "pad" adds borders
        in its mean colour, and "stretch" changes its proportions.
    bits, window
        See `scale_pixels`.
    floats
        Whether scaled pixels stay floats in [0, 1], for a network that takes them.
    """
    from PIL import Image, ImageOps

    image = open_photo(source, name)
    about, grey = {}, size is not None and size[2] == 1
    deep = image.mode == "F" or image.mode.startswith("I")
    if deep:
        depth = bits or (image.info.get("bits") if window is None else None)
        scaled, about["pixels"] = scale_pixels(np.asarray(image), depth, window, from_file=True)
        image = Image.fromarray(scaled)
    else:
        image = image.convert("L" if grey else "RGB")
    if size is not None and size[0]:
        if words := fit_words((image.height, image.width), size, fit):
            about["fit"] = words
        mean = np.asarray(image).mean(axis=(0, 1))  # a border that looks like a hidden one
        colour = mean.item() if deep else tuple(np.rint(np.ravel(mean)).astype(int).tolist())
        pad = partial(ImageOps.pad, color=colour)
        ways: Any = {"crop": ImageOps.fit, "pad": pad, "stretch": Image.Image.resize}
        image = ways[fit](image, (size[1], size[0]), Image.Resampling.BICUBIC)
    pixels = np.asarray(image)
    if deep:
        pixels = pixels.clip(0, 1) if grey else pixels.clip(0, 1)[..., None].repeat(3, axis=-1)
    elif bits or window:
        pixels, about["pixels"] = scale_pixels(pixels, bits, window)
    if pixels.dtype == np.float32 and not floats:
        pixels = np.rint(255 * pixels).astype(np.uint8)
    return Picture(pixels=pixels, about=about)


def scale_pixels(
    pixels: np.ndarray,
    bits: int | None = None,
    window: Sequence[float] | None = None,
    *,
    from_file: bool = False,
) -> tuple[NDArray[np.float32], str]:
    """Pixels as floats in [0, 1], and in words what became 0 and 1.

    Parameters
    ----------
    bits
        How many of their bits the pixels use: 12 divides them by 4095. None takes the 16 bits of a
        file, and refuses other whole numbers, and files that are so dark that they may have fewer.
    window
        The two numbers that become 0 and 1, instead of `bits`; those outside are clipped.
    from_file
        Whether the depth is that of a file.
    """
    least, most = float(pixels.min()), float(pixels.max())
    if window is None and bits is None:
        if pixels.dtype.kind == "f" and least >= 0 and most <= 1:
            return pixels.astype(np.float32), "0 to 1"
        if not from_file or not 1 << 13 <= most < 1 << 16 or least < 0:
            guess = next((n for n in (8, 10, 12, 14, 16) if most < 1 << n), 32)
            raise ValueError(
                f"A network that takes pixels from 0 to 1 needs to know the depth of an image of "
                f"{pixels.dtype} with numbers from {least:g} to {most:g}. Set `bits` (such as "
                f"{guess}, which divides by {(1 << guess) - 1}), or set `window` to the two "
                "numbers that become 0 and 1."
            )
    low, high = (0, (1 << (bits or 16)) - 1) if window is None else window
    if window is None and (least < 0 or most > high or (pixels.dtype == np.uint8 and high > 255)):
        raise ValueError(
            f"`bits` must fit the image: {bits or 16} bits are 0 to {high}, and its numbers are "
            f"{pixels.dtype} from {least:g} to {most:g}."
        )
    scaled = (pixels.astype(np.float64) - low) / (high - low)
    return scaled.clip(0, 1).astype(np.float32), f"{low:g} to {high:g} as 0 to 1"


def check_scaling(bits: int | None, window: Sequence[float] | None) -> None:
    """Refuse a depth or a window that no image can have."""
    if bits is not None and window is not None:
        raise ValueError("`bits` and `window` cannot be used together; give one of them.")
    if bits is not None:
        check_count("bits", bits, maximum=32)
    if window is not None:
        ends = as_floats("window", window)
        if ends.shape != (2,) or not -np.inf < ends[0] < ends[1] < np.inf:
            raise ValueError(f"`window` must be two numbers, low < high; got {window!r:.60}.")


def fit_words(shape: tuple[int, int], size: tuple[int, int, int], fit: str) -> str:
    """What happens to a photo of a shape (height, width) to fit a size; empty if only scaled."""
    height, width = shape
    scale = (max if fit == "pad" else min)(height / size[0], width / size[1])
    there = round(scale * size[0]), round(scale * size[1])
    end = size if fit == "stretch" else there
    way = {"crop": "cropped to the middle", "pad": "with plain borders to"}.get(fit, "stretched to")
    return "" if there == shape else f"{width} x {height} pixels {way} {end[1]} x {end[0]}"


def photo_shape(source: Any) -> tuple[int, int]:
    """Height and width of an upright photo, from its first bytes."""
    from PIL import ExifTags, Image

    with Image.open(source, formats=_FORMATS) as image:
        on_its_side = image.getexif().get(ExifTags.Base.Orientation, 1) > 4
        return image.size if on_its_side else image.size[::-1]


def _is_pil(source: object) -> TypeGuard[Image.Image]:
    from PIL import Image

    return isinstance(source, Image.Image)


def _name(source: object) -> str:
    if isinstance(source, (str, os.PathLike)):
        return repr(os.fspath(source))
    found = getattr(source, "filename", None) or getattr(source, "name", None)
    return repr(found) if found else "`image`"


def _from_dicom(path: Path, name: str) -> Image.Image:
    """A DICOM image: grey with its depth, or in colours of 8 bits."""
    from PIL import Image

    header, pixels = read_file(path, {".dcm": read_dicom})
    if pixels.ndim != 2 and not (pixels.ndim == 3 and pixels.shape[2] == 3):
        raise ValueError(
            f"{name} must have one frame; its pixels have shape {pixels.shape}. Use "
            "`VolumeExplainer`, or pass one frame as an array."
        )
    usual = np.int32 if pixels.dtype.kind == "i" else np.float32
    image = Image.fromarray(pixels if pixels.dtype in ("u1", "u2") else pixels.astype(usual))
    if pixels.dtype.kind == "u":
        image.info["bits"] = int(header.BitsStored)
    return image


def _upright(image: Image.Image, name: str) -> Image.Image:
    """The only page of an image, rotated as its EXIF data says, in grey or RGB."""
    from PIL import ExifTags, Image, ImageOps

    pages = int(getattr(image, "n_frames", 1))
    if pages > 1 and image.format != "MPO":  # phones store previews and depth maps this way
        raise ValueError(
            f"{name} must have one page; got {pages}. Choose one, such as the first: "
            "`image = PIL.Image.open(path); image.seek(0)`, and pass `image.copy()`."
        )
    tiles = getattr(image, "tile", ()) if len(image.getbands()) > 2 else ()
    if any(";16" in str(tile[3]) for tile in tiles):  # such as "RGB;16B"
        warn_user(
            f"{name} has 16 bits per channel and is read with 8. To keep them, read it with "
            "another package, such as tifffile or OpenCV, and pass the array."
        )
    image.load()
    turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1
    upright = ImageOps.exif_transpose(image) if turned else image  # else it would make a copy
    if upright.mode in ("1", "F") or upright.mode.startswith("I"):
        return upright
    if "A" in upright.getbands() or "transparency" in upright.info:
        clear = upright if upright.mode == "RGBA" else upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear)
    return upright if upright.mode in ("L", "RGB") else upright.convert("RGB")
