"""A replacement of lime 0.2.0.1: change the import line, and code written for lime runs.

`from lime.lime_tabular import LimeTabularExplainer` becomes
`from eblime.compat.lime.lime_tabular import LimeTabularExplainer`; the modules have lime's names.
Results have lime's attributes and methods, and besides them `posterior`, `explanation` and
`as_list(intervals=True)`. `method="lime"` gives lime's own numbers.
"""

from eblime.compat.lime.lime_image import LimeImageExplainer
from eblime.compat.lime.lime_tabular import LimeTabularExplainer, RecurrentTabularExplainer
from eblime.compat.lime.lime_text import LimeTextExplainer
from eblime.compat.lime.submodular_pick import SubmodularPick

__all__ = ["LimeImageExplainer", "LimeTabularExplainer", "LimeTextExplainer"]
__all__ += ["RecurrentTabularExplainer", "SubmodularPick"]
