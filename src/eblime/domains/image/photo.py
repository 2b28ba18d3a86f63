"""Reading photos: the one way from a file or a PIL image to pixels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from eblime._warn import warn_user

if TYPE_CHECKING:
    from PIL import Image

# Only these formats are read, whatever a file is called: for others, such as EPS, Pillow would
# start another program.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
PHOTO_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")

_MOST_PIXELS = 100_000_000  # of a photo in a file, by its header


def is_photo(source: object) -> bool:
    """Whether `source` is a path, an open file or a PIL image."""
    return isinstance(source, (str, os.PathLike)) or hasattr(source, "read") or _is_pil(source)


def open_photo(source: Any, name: str | None = None) -> Image.Image:
    """Read one photo as a PIL image: upright, in grey or RGB, transparent parts on white.

    Grey photos keep their depth (modes "1", "L", "I", "I;16" and "F").

    Parameters
    ----------
    source
        A path, an open file or a PIL image.
    name
        The name of the photo in error messages; its path by default.

    Raises
    ------
    ValueError
        If the photo cannot be read, is in another format than those of `PHOTO_ENDINGS`, has
        several pages or frames, or has more than 100 million pixels.
    """
    from PIL import Image, UnidentifiedImageError

    name = _name(source) if name is None else repr(name)
    if _is_pil(source):
        return _upright(source, name)
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
    except UnidentifiedImageError as error:
        raise ValueError(
            f"{name} is not an image in a supported format: {', '.join(_FORMATS)}. Read other "
            "formats with another package, and pass the array."
        ) from error
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{name} cannot be read: {error}.") from error


def read_photo(
    source: object,
    size: tuple[int, int, int] | None = None,
    name: str | None = None,
    fit: str = "crop",
) -> NDArray[np.uint8]:
    """Read one photo as 8-bit pixels, in a model's size.

    Parameters
    ----------
    source, name
        See `open_photo`.
    size
        (height, width, channels), with 1 or 3 channels; None keeps the photo's size, in RGB.
    fit
        How a photo of another shape gets that size: "crop" keeps its middle, "pad" adds black
        borders, and "stretch" changes its proportions.
    """
    from PIL import Image, ImageOps

    image = _eight_bits(open_photo(source, name))
    image = image.convert("L" if size is not None and size[2] == 1 else "RGB")
    if size is not None:
        ways: Any = {"crop": ImageOps.fit, "pad": ImageOps.pad, "stretch": Image.Image.resize}
        image = ways[fit](image, (size[1], size[0]), Image.Resampling.BICUBIC)
    return np.asarray(image)


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


def _eight_bits(image: Image.Image) -> Image.Image:
    """Scale a grey image of more than 8 bits to 8; others are returned unchanged."""
    from PIL import Image

    if not (image.mode.startswith("I") or image.mode == "F"):
        return image
    deep = np.asarray(image).astype(np.float64)
    low, high = (0.0, 65535.0) if image.mode.startswith("I") else (deep.min(), deep.max())
    if deep.min() < low or deep.max() > high:
        low, high = deep.min(), deep.max()
    scaled = 255 * (deep - low) / max(high - low, 1e-300)
    return Image.fromarray(np.round(scaled).astype(np.uint8))
