"""Names that try to be something else: pages, scripts, terminal orders, formulas."""

import dataclasses

from hypothesis import strategies as st

SCRIPT = "</script><script>window.hacked = 1; alert(1)</script>"
NASTY = [
    SCRIPT,
    '"><img src=x onerror="window.hacked=1">',
    "<!-- --><![CDATA[",
    "&amp;&#x3c;b&#x3e;",
    "${7*7}{{7*7}}%s%d{0}",
    "\x1b]0;title\x07\x1b[2J\x1b[31mred",
    "a\r\nb\tc\x00d\x08\x7f\x85",
    "\u202egpj.exe\u2066\u2028\u2029",
    "\ud800 lone \udfff",
    r"$\frac{1}{0}$ $ \unknown_{",
    "[bold red]markup[/] [link=http://x]y[/link] [/nothing]",
    "_nolegend_",
    "عربى عברית 日本語 👩‍👩‍👧‍👦 e\u0301",
    "'; DROP TABLE features; --",
    "=cmd|' /C calc'!A0",
    "",
    " ",
    "x" * 3000,
]
names = st.text(max_size=40)


@dataclasses.dataclass(frozen=True)
class Renamed:
    """A scene under other names."""

    scene: object
    features: list

    def __getattr__(self, name):
        return getattr(self.scene, name)


def renamed(explanation, name):
    """An explanation whose label and features are called `name`, numbered where they repeat."""
    count = explanation.scene.n_features
    features = [name if j == 0 else f"{name}{j}" for j in range(count)]
    return dataclasses.replace(
        explanation, label=name, scene=Renamed(scene=explanation.scene, features=features)
    )


__all__ = ["NASTY", "SCRIPT", "names", "renamed"]
