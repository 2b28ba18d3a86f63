"""`eblime explain volume` and `eblime batch volume`: files of volumes and the volume options."""

from __future__ import annotations

from pathlib import Path

from eblime.cli.image import OF_GRAPHS, cut_options
from eblime.cli.output import file_items, folder_files
from eblime.domains.readers import VOLUME_ENDINGS
from eblime.domains.record import Command, Option


def parse_spacing(text: str) -> tuple[float, ...]:
    """`0.5,1,1` as numbers."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ValueError(f"--spacing must be numbers such as 0.5,1,1; got {text!r}.") from error


COMMAND = Command(
    help="Explain a volume or a folder of volumes, by blocks or regions.",
    metavar="VOLUME",
    argument="A .npy, .npz, .tif, .mat, .h5, .nde or .nii file, or a folder of them.",
    example="eblime explain volume scans/ --model flaws:score --segmentation blocks:n=4",
    batch_argument="A folder on this machine.",
    items=lambda argument, model, options: file_items(
        Path(argument), VOLUME_ENDINGS, Path, "volume"
    ),
    inputs=lambda argument, model, options: folder_files(argument, VOLUME_ENDINGS),
    defaults={"design": "paired", "top": 5},
    options=[
        *cut_options(
            "slic or blocks; with parameters blocks:n=4, blocks:n=(2,8,8) or slic:n_segments=100.",
            "What a hidden region shows: mean (of its voxels), blur, or a number such as 0.",
        ),
        Option("spacing", "Size of a voxel: 0.5,1,1.", parse=parse_spacing, commas=True),
        Option("unit", "Unit of the spacing.", default="mm"),
        Option("channels", "The channel axis.", default="auto", choices=("auto", "first", "last")),
        Option("key", "Name of the array in a .npz, .mat or HDF5 file that has several."),
        *OF_GRAPHS,
    ],
)
