"""Stop rules: when the question is answered, and with what probability.

`rules` has `TopK`, `Ranking`, `Sign` and `Width`, combined with `&` and `|`; `looks` accounts for
looking repeatedly; `rule` has what they share; `parse` reads rules such as "top5".
"""
