"""Plots of explanations: Explanation -> matplotlib Axes.

Every function draws on the given axes, or on new ones, and returns them; none calls `show`. The
colours are those of Okabe and Ito: colour-blind readers can distinguish them, and they differ in
lightness when printed in grey.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime._lazy import lazy_names

if TYPE_CHECKING:
    from eblime.plot.charts import by_width as by_width
    from eblime.plot.charts import compare as compare
    from eblime.plot.charts import convergence as convergence
    from eblime.plot.charts import densities as densities
    from eblime.plot.charts import detection as detection
    from eblime.plot.charts import intervals as intervals
    from eblime.plot.charts import means as means
    from eblime.plot.charts import ranks as ranks
    from eblime.plot.charts import ridge as ridge
    from eblime.plot.charts import valued as valued
    from eblime.plot.maps import importance_map as importance_map
    from eblime.plot.maps import interaction_map as interaction_map
    from eblime.plot.maps import mean_map as mean_map
    from eblime.plot.maps import posterior_maps as posterior_maps
    from eblime.plot.maps import sign_map as sign_map
    from eblime.plot.maps import top_k_map as top_k_map
    from eblime.plot.maps import uncertainty_map as uncertainty_map
    from eblime.plot.runs import beeswarm as beeswarm
    from eblime.plot.runs import dependence as dependence
    from eblime.plot.signals import signal_map as signal_map
    from eblime.plot.text import highlighted as highlighted
    from eblime.plot.volumes import projections as projections
    from eblime.plot.volumes import slices as slices

_HOMES = {  # module -> its names
    "charts": (
        "by_width",
        "compare",
        "convergence",
        "densities",
        "detection",
        "intervals",
        "means",
        "ranks",
        "ridge",
        "valued",
    ),
    "maps": (
        "importance_map",
        "interaction_map",
        "mean_map",
        "posterior_maps",
        "sign_map",
        "top_k_map",
        "uncertainty_map",
    ),
    "runs": ("beeswarm", "dependence"),
    "signals": ("signal_map",),
    "text": ("highlighted",),
    "volumes": ("projections", "slices"),
}
_MODULES = ("charts", "maps", "poster", "runs", "signals", "style", "text", "volumes")

__all__ = [name for names in _HOMES.values() for name in names]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, _MODULES)
