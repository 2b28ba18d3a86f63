"""`Explainer`: inputs of any domain, such as one that another package adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eblime import registry
from eblime._progress import Progress
from eblime._repr import settings_repr
from eblime.domains.record import Domain
from eblime.engine.neighbourhood import MaskedSubject
from eblime.engine.targets import Labels
from eblime.explainers.base import BaseExplainer
from eblime.models.adapt import as_model, output_names
from eblime.protocols import Kernel, Method

__all__ = ["Explainer"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explainer(BaseExplainer):
    """Explains inputs of a domain, by name or by its record.

    Parameters
    ----------
    model
        Anything that scores a batch of inputs; see `as_model`.
    kind
        A `Domain`, or the name of a registered one.
    settings
        How an input is read: settings of the domain's `read`.
    n_masks, design, kernel, method, batch_size, progress, labels
        As for `ImageExplainer`; None for design or kernel is the domain's default.
    """

    model: Any
    kind: str | Domain
    settings: Mapping[str, Any] = field(default_factory=dict)
    n_masks: int = 1000
    design: Any = None
    kernel: str | Kernel | None = None
    method: str | Method = "eblime"
    batch_size: int | None = None
    progress: Progress = None
    labels: Labels | None = None

    about = ("settings",)

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, before any input is read."""
        record = self.kind if isinstance(self.kind, Domain) else registry.find("domains", self.kind)
        if record.read is None:
            raise ValueError(
                f"The domain {record.name!r} has an explainer of its own; use that instead."
            )
        for name in ("design", "kernel"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(record, name))
        if self.labels is None:
            object.__setattr__(self, "labels", output_names(self.model))
        object.__setattr__(self, "kind", record)
        object.__setattr__(self, "model", as_model(self.model))
        self.check()

    def __repr__(self) -> str:
        """The model and the settings that differ from the defaults."""
        return settings_repr(self)

    @property
    def domain(self) -> str:
        """Name of the domain."""
        assert isinstance(self.kind, Domain)
        return self.kind.name

    def subject(self, x: Any) -> MaskedSubject:
        """Read an input, so that it can be perturbed."""
        assert isinstance(self.kind, Domain)
        assert self.kind.read is not None
        return MaskedSubject(scene=self.kind.read(x, **self.settings))
