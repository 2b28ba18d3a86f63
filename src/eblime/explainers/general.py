"""`Explainer`: inputs of any domain, such as one from another package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from eblime import registry
from eblime.domains.masked import MaskedSubject
from eblime.domains.record import Domain
from eblime.explainers.base import BaseExplainer
from eblime.protocols import Subject


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explainer(BaseExplainer):
    """Explains inputs of any domain, given by its name or its record.

    Parameters
    ----------
    model
        Anything that scores a batch of inputs; see `as_model`.
    kind
        A `Domain`, or the name of a registered one.
    settings
        Settings of the domain's `read`: how an input is cut into features.
    n_masks, design, kernel, method, progress, labels, calls, cache
        See `eblime.explainers.base.BaseExplainer`.

    Notes
    -----
    Without a `design` or a `kernel`, those of the domain are used.

    Examples
    --------
    A domain with two features, the halves of a series:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import eblime
    >>> from eblime.domains import Domain
    >>> @dataclass(frozen=True)
    ... class Halves:
    ...     series: np.ndarray
    ...     domain = "halves"
    ...     features = ("first half", "second half")
    ...     n_features = 2
    ...     sizes = (256,)  # batch sizes worth trying
    ...
    ...     def inputs(self, masks):
    ...         return self.series * masks.repeat(len(self.series) // 2, axis=1)
    >>> halves = Domain(name="halves", feature="half", scene=Halves, read=Halves)
    >>> ends = lambda batch: 2 * batch[:, 0] + batch[:, -1]
    >>> explanation = eblime.Explainer(ends, halves).explain(np.ones(8))
    >>> explanation.posterior.mean.round(1)
    array([2., 1.])
    """

    kind: Any  # a `Domain`, or the name of one
    settings: Mapping[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    design: Any = None

    about = ("settings",)

    def __post_init__(self) -> None:
        record = self.kind if isinstance(self.kind, Domain) else registry.find("domains", self.kind)
        if record.read is None:
            raise ValueError(
                f"The domain {record.name!r} has its own explainer; use that one instead."
            )
        self._normalise(
            kind=record,
            design=record.design if self.design is None else self.design,
            kernel=record.kernel if self.kernel is None else self.kernel,
        )
        self._make_loop()

    @property
    def domain(self) -> str:
        """Name of the domain."""
        return str(self.kind.name)

    def subject(self, x: object) -> Subject:
        """Read an input, so that it can be perturbed."""
        found: Any = self.kind.read(x, **self.settings)
        subject: Subject = found if isinstance(found, Subject) else MaskedSubject(scene=found)
        return subject
