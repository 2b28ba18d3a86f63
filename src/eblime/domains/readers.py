"""Arrays from files, for volumes and signals: the numbers, and what a format knows of its axes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from eblime._lazy import import_extra
from eblime._threads import free_memory

Found = TypeVar("Found")
Axes = tuple[int, int]  # how many an array may have that is read
Headers = dict[str, tuple[tuple[int, ...], DTypeLike]]  # shape and type of each array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan:
    """The numbers of a volume, and what its file says about its axes."""

    values: np.ndarray
    axes: Sequence[str] = ("z", "y", "x")
    spacing: Sequence[float] | None = None
    unit: str | None = None


def read_scan(source: Any, key: str | None = None) -> Scan:
    """Read a volume from a file; an array is returned as it is.

    `key` names the array in a .npz, .mat or HDF5 file; None takes the only one that has three or
    four axes.
    """
    if not isinstance(source, (str, os.PathLike)):
        return Scan(values=source)
    return read_file(Path(source), {end: partial(read, key=key) for end, read in _READERS.items()})


def read_file(path: Path, readers: Mapping[str, Callable[[Path], Found]]) -> Found:
    """What the reader for the ending of a file returns; its errors name the file."""
    read = next((r for end, r in readers.items() if path.name.lower().endswith(end)), None)
    if read is None:
        raise ValueError(
            f"{str(path)!r} must end in {', '.join(readers)}. Read other formats with another "
            "package, and pass the array."
        )
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    try:
        return read(path)
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        if repr(str(path)) in str(error):
            raise
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error


def check_memory(shape: Sequence[int], dtype: DTypeLike) -> None:
    """Refuse a volume that does not fit into memory together with what explaining it needs.

    About five copies in its dtype (read, shown, hidden, their difference, a perturbed one), and
    three whole numbers per voxel for the features.
    """
    numbers, free = int(np.prod(shape, dtype=object)), free_memory()
    needed = numbers * (5 * np.dtype(dtype).itemsize + 24)
    if free is not None and needed > free:
        raise ValueError(
            f"The array must fit into memory: shape {tuple(shape)} of {np.dtype(dtype)} needs "
            f"about {needed / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free. Pass a part of it, or "
            "a coarser copy such as `volume[::2, ::2, ::2]`."
        )


def _choose(arrays: Headers, key: str | None, path: Path, axes: Axes = (3, 4)) -> str:
    """The array to read, of all by name with their shapes and dtypes; checked to fit."""
    if key is None:
        possible = [k for k, (s, _) in arrays.items() if len(s) in axes and max(s) > 1]
        if len(possible) != 1:
            listed = "; ".join(f"{name!r} {shape}" for name, (shape, _) in arrays.items())
            raise ValueError(
                f"{str(path)!r} must have one array of {axes[0]} or {axes[1]} axes, or `key` must "
                f"name one; it has {listed or 'no arrays'}."
            )
        key = possible[0]
    if key not in arrays:
        listed = ", ".join(repr(name) for name in arrays)
        raise ValueError(f"`key` must be an array in {str(path)!r}, {listed}; got {key!r}.")
    check_memory(*arrays[key])
    return key


def read_npy(path: Path, key: str | None = None) -> Scan:
    """A NumPy array; one in a .npz archive by its name."""
    found: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(found, np.ndarray):
        check_memory(found.shape, found.dtype)
        return Scan(values=np.asarray(found))
    with found:
        headers = {}
        for name in found.files:
            with found.zip.open(f"{name}.npy") as entry:
                version = np.lib.format.read_magic(entry)
                read = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
                shape, _, dtype = read(entry)
            headers[name] = (shape, dtype)
        return Scan(values=found[_choose(headers, key, path)])


def _read_tiff(path: Path, key: object) -> Scan:  # noqa: ARG001  as other readers
    import tifffile  # comes with scikit-image

    with tifffile.TiffFile(path, _multifile=False) as file:
        series = file.series[0]
        if file.is_ome and series.kind.lower() != "ome":
            raise ValueError(
                f"{str(path)!r} must hold its data itself; its OME header names other files, or is "
                "damaged. Read it with tifffile, and pass the array."
            )
        check_memory(series.shape, series.dtype)
        return Scan(values=series.asarray())


def read_mat(path: Path, key: str | None = None, axes: Axes = (3, 4)) -> Scan:
    """An array of a MATLAB file; since version 7.3 they are HDF5, with the axes reversed."""
    from scipy import io

    with path.open("rb") as opened:
        newer = b"MATLAB 7.3" in opened.read(128)
    if newer:
        scan = _read_hdf5(path, key, axes)
        return Scan(values=np.asarray(scan.values).T)
    numbers = ("double", "single", "logical", "int", "uint")
    headers: Headers = {  # the file does not say how many bytes a number takes
        name: (tuple(shape), "f8")
        for name, shape, kind in io.whosmat(path)
        if kind.startswith(numbers)
    }
    chosen = _choose(headers, key, path, axes)
    return Scan(values=io.loadmat(path, variable_names=[chosen])[chosen])


def _read_hdf5(path: Path, key: str | None, axes: Axes = (3, 4)) -> Scan:
    found: dict[str, Any] = {}
    with import_extra("h5py", "volume").File(path, "r") as file:
        file.visititems(found.__setitem__)
        headers = {
            name: (entry.shape, entry.dtype)
            for name, entry in found.items()
            if getattr(entry, "shape", None) and entry.dtype.kind in "buif"
        }
        entry = found[_choose(headers, key and key.strip("/"), path, axes)]
        if entry.is_virtual or entry.external or entry.file.filename != file.filename:
            raise ValueError(
                f"{str(path)!r} must hold its data itself; {entry.name!r} is in another file. Copy "
                "it into one file, such as with h5repack."
            )
        return Scan(values=entry[()])


def _read_nifti(path: Path, key: object) -> Scan:  # noqa: ARG001  as other readers
    """The voxels of a NIfTI file, scaled as its header says, with its spacing."""
    nibabel = import_extra("nibabel", "volume")
    image = nibabel.load(path)
    scaled = image.dataobj.slope != 1 or image.dataobj.inter != 0
    check_memory(image.shape, np.float64 if scaled else image.get_data_dtype())
    steps = [float(step) for step in image.header.get_zooms()[:3]]
    unit = {"mm": "mm", "micron": "um", "meter": "m"}.get(image.header.get_xyzt_units()[0], "mm")
    return Scan(values=np.asarray(image.dataobj), axes=("x", "y", "z"), spacing=steps, unit=unit)


def read_dicom(source: Any) -> tuple[Any, np.ndarray]:
    """The header of a DICOM or DICONDE file, and its numbers as the header scales them.

    Whole numbers stay whole; where low ones are white, they are turned round.
    """
    pydicom = import_extra("pydicom", "dicom")
    header = pydicom.dcmread(source)
    numbers = header.pixel_array
    if header.get("PhotometricInterpretation") == "MONOCHROME1":
        numbers = (1 << int(header.BitsStored)) - 1 - numbers
    slope = float(header.get("RescaleSlope", 1))
    shift = float(header.get("RescaleIntercept", 0))
    return header, numbers if (slope, shift) == (1, 0) else numbers * slope + shift


def _read_frames(path: Path, key: object) -> Scan:  # noqa: ARG001  as other readers
    """The frames of a DICOM file, with the spacing in millimetres if the header has it."""
    header, values = read_dicom(path)
    steps = (header.get("SpacingBetweenSlices"), *(header.get("PixelSpacing") or [None]))
    spacing = None if None in steps else [float(step) for step in steps]
    return Scan(values=values, spacing=spacing, unit="mm")


_READERS: dict[str, Callable[..., Scan]] = {
    ".npy": read_npy,
    ".npz": read_npy,
    ".tif": _read_tiff,
    ".tiff": _read_tiff,
    ".mat": read_mat,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
    ".nde": _read_hdf5,
    ".dcm": _read_frames,
    ".nii": _read_nifti,
    ".nii.gz": _read_nifti,
}
VOLUME_ENDINGS = tuple(_READERS)
