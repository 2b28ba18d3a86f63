"""What `eblime batch` was told, kept in the run: the explainer and its inputs, made anywhere."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eblime.batch.files import Files, find_files
from eblime.batch.location import Location
from eblime.cli.modelfile import load_labels, load_model
from eblime.cli.photos import parse_hide, parse_segmentation, photo_size
from eblime.cli.tables import match_columns, parse_groups, read_table
from eblime.domains.image.photo import PHOTO_ENDINGS, read_photo

__all__ = ["Recipe", "begin", "inputs_of", "located"]

_LARGE = 200 << 20  # bytes of a table that is read whole, to be its own background


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Makes the explainer of a run in whatever process needs it."""

    told: dict[str, Any]
    trust_pickle: bool
    import_from: str | None  # folder in which a module:name is looked for, besides those installed

    def __call__(self) -> Any:
        """Load the model and make the explainer."""
        from eblime.explainers.image import ImageExplainer
        from eblime.explainers.tabular import TabularExplainer
        from eblime.explainers.text import TextExplainer

        told, model = self.told, self.model()
        for name in ("labels", "background"):
            if told.get(name) and told[f"{name}_sha256"] != _digest(told[name]):
                raise ValueError(f"{told[name]} is not the file that the run was begun with.")
        settings: dict[str, Any] = {
            "n_masks": told["masks"],
            "method": told["method"],
            "labels": None if told["labels"] is None else load_labels(Path(told["labels"])),
        }
        if told["kind"] == "image":
            settings["segmentation"] = parse_segmentation(told["segmentation"])
            settings["hide"] = parse_hide(told["hide"])
            return ImageExplainer(model, **settings)
        if told["kind"] == "text":
            return TextExplainer(model, tokens=told["tokens"], **settings)
        usual = read_table(_background(told))
        drop = ",".join(name for name in told["drop"].split(",") if name in usual.columns)
        usual = match_columns(usual, model, drop)
        settings["categorical"] = told["categorical"].split(",") if told["categorical"] else None
        settings["groups"] = parse_groups(told["group"])
        for name in ("representation", "bins", "perturb"):
            settings[name] = told[name]
        return TabularExplainer(model, usual, **settings)

    def model(self) -> Any:
        """The model, which must be the one that the run was begun with."""
        told = self.told
        if told["model_sha256"] != _digest(told["model"]):
            raise ValueError(f"{told['model']} is not the model that the run was begun with.")
        if self.import_from and self.import_from not in sys.path:
            sys.path.append(self.import_from)
        names = ("normalise", "activation", "output_name")
        ways = {name: told[name] for name in names if name in told}
        return load_model(told["model"], trust_pickle=self.trust_pickle, **ways)


@dataclass(frozen=True, slots=True, kw_only=True)
class Photos:
    """The photos of a folder, cut and scaled to what the model takes."""

    files: Files
    size: tuple[int, int, int] | None

    @property
    def fingerprint(self) -> str:
        """That of the files, and the size they are scaled to."""
        return f"{self.files.fingerprint}-{self.size}"

    def __len__(self) -> int:
        return len(self.files)

    def name(self, number: int) -> str:
        """Its file name."""
        return self.files.name(number)

    def get(self, number: int) -> Any:
        """A photo as an array."""
        place = self.files.folder / self.files.name(number)
        source = place.local_path or io.BytesIO(place.read())
        return read_photo(source, self.size, str(place))


def begin(kind: str, inputs: str, model: str, **settings: Any) -> dict[str, Any]:
    """What a run is told, with every path such that it is found from anywhere."""
    told: dict[str, Any] = {
        "kind": kind,
        "inputs": Location.of(inputs).address,
        "model": located(model),
        "model_sha256": _digest(model),
        "imported_from": None if Path(model).is_file() else str(Path.cwd()),
    }
    for name, value in settings.items():
        told[name] = str(value.resolve()) if isinstance(value, Path) else value
        if isinstance(value, Path):
            told[f"{name}_sha256"] = _digest(told[name])
    if kind == "tabular":
        _background(told)
    return told


def located(model: str) -> str:
    """A model as a manifest names it: the full path of a file, or a Python name as it is."""
    return str(Path(model).resolve()) if Path(model).is_file() else model


def inputs_of(recipe: Recipe) -> Any:
    """The inputs of a run: photos in the size that the model takes, else as they are."""
    told = recipe.told
    place = Location.of(told["inputs"])
    if told["kind"] != "image":
        return place
    if place.kind() == "nothing":
        raise FileNotFoundError(f"There is no folder {told['inputs']!r}.")
    files = find_files(place, PHOTO_ENDINGS)
    return Photos(files=files, size=photo_size(recipe.model(), told["size"]))


def _background(told: dict[str, Any]) -> Path:
    """The table that says what is usual: the user's, or the inputs where they can be read whole."""
    if told["background"] is not None:
        return Path(told["background"])
    path = Location(told["inputs"]).local_path
    whole = path is not None and path.suffix in (".csv", ".tsv", ".parquet") and path.is_file()
    if path is not None and not path.exists():
        raise FileNotFoundError(f"There is no table {told['inputs']!r}.")
    if path is None or not whole or path.stat().st_size > _LARGE:
        raise ValueError(
            "--background must name a table that says what is usual, such as the training data: "
            f"{told['inputs']} is not one that can be read whole."
        )
    return path


def _digest(path: str) -> str | None:
    """What a file holds, None for a Python name."""
    return Location.of(path).digest() if Path(path).is_file() else None
