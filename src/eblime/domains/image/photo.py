"""Reading photos: the one way from a file or a PIL image to pixels."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PHOTO_ENDINGS", "is_photo", "open_photo", "read_photo"]

PHOTO_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")


def is_photo(source: Any) -> bool:
    """Whether `source` is a path, an open file or a PIL image, rather than an array."""
    return (
        isinstance(source, (str, os.PathLike))
        or hasattr(source, "read")
        or (hasattr(source, "convert") and hasattr(source, "getbands"))
    )


def open_photo(source: Any, name: str | None = None) -> Any:
    """Read one photo as a PIL image: upright, in grey or RGB, transparent parts on white.

    Grey photos keep their depth (modes "1", "L", "I", "I;16" and "F").

    Parameters
    ----------
    source
        A path, an open file or a PIL image.
    name
        What error messages call the photo; its path by default.

    Raises
    ------
    ValueError
        If the photo cannot be read, or has several pages or frames.
    """
    from PIL import Image, UnidentifiedImageError

    name = _name(source) if name is None else repr(name)
    if hasattr(source, "getbands"):
        return _upright(source, name)
    try:
        with Image.open(source) as opened:
            return _upright(opened, name)
    except FileNotFoundError:
        raise
    except UnidentifiedImageError as error:
        raise ValueError(f"{name} is not an image that can be read.") from error
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{name} cannot be read: {error}.") from error


def read_photo(
    source: Any, size: tuple[int, int, int] | None = None, name: str | None = None
) -> NDArray[np.uint8]:
    """Read one photo as 8-bit pixels, its centre cropped and scaled to a model's size.

    Parameters
    ----------
    source, name
        See `open_photo`.
    size
        (height, width, channels), with 1 or 3 channels; None keeps the photo's size, in RGB.
    """
    from PIL import Image, ImageOps

    image = _eight_bits(open_photo(source, name))
    image = image.convert("L" if size is not None and size[2] == 1 else "RGB")
    if size is not None:
        image = ImageOps.fit(image, (size[1], size[0]), Image.Resampling.BICUBIC)
    return np.asarray(image)


def _name(source: Any) -> str:
    """What error messages call a photo."""
    if isinstance(source, (str, os.PathLike)):
        return repr(os.fspath(source))
    found = getattr(source, "filename", None) or getattr(source, "name", None)
    return repr(found) if found else "`image`"


def _upright(image: Any, name: str) -> Any:
    """One page, rotated as its EXIF data says, in grey or RGB."""
    from PIL import Image, ImageOps

    pages = _page_count(image)
    if pages > 1:
        raise ValueError(
            f"{name} must have one page; got {pages}. Choose one, such as the first: "
            "`image = PIL.Image.open(path); image.seek(0)`, and pass `image.copy()`."
        )
    if _loses_depth(image):
        warnings.warn(
            f"{name} has 16 bits per channel and is read with 8. To keep them, read it with "
            "another package, such as tifffile or OpenCV, and pass the array.",
            stacklevel=2,
        )
    upright = ImageOps.exif_transpose(image)
    upright.load()
    if upright.mode in ("1", "F") or upright.mode.startswith("I"):
        return upright
    if "A" in upright.getbands() or "transparency" in upright.info:
        clear = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear)
    return upright if upright.mode == "L" else upright.convert("RGB")


def _page_count(image: Any) -> int:
    """Pages or frames of an image, without the previews that cameras and TIFF files add."""
    count = getattr(image, "n_frames", 1)
    if count == 1 or image.format == "MPO":  # phones store previews and depth maps this way
        return 1
    if image.format != "TIFF":
        return int(count)
    here, found = image.tell(), 0
    for page in range(count):
        image.seek(page)
        found += not image.tag_v2.get(254, 0) & 1  # NewSubfileType: a smaller copy of another page
    image.seek(here)
    return found


def _loses_depth(image: Any) -> bool:
    """Whether a file holds 16 bits per colour channel, of which Pillow keeps 8."""
    if len(image.getbands()) < 3:
        return False
    for tile in getattr(image, "tile", None) or ():
        codec, settings = tile[0], tile[3]
        parts = settings if isinstance(settings, tuple) else (settings,)
        if any(isinstance(part, str) and ";16" in part for part in parts):
            return True
        if codec.startswith("ppm") and any(isinstance(p, int) and p > 255 for p in parts):
            return True
    return False


def _eight_bits(image: Any) -> Any:
    """A grey image of more than 8 bits scaled to 8; others as they are."""
    from PIL import Image

    if not (image.mode.startswith("I") or image.mode == "F"):
        return image
    deep = np.asarray(image).astype(np.float64)
    low, high = (0.0, 65535.0) if image.mode.startswith("I") else (deep.min(), deep.max())
    if deep.min() < low or deep.max() > high:
        low, high = deep.min(), deep.max()
    scaled = 255 * (deep - low) / max(high - low, 1e-300)
    return Image.fromarray(np.round(scaled).astype(np.uint8))
