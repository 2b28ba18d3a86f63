"""Stop rules: when the question is answered, and with what probability.

`rules` has `TopK`, `Ranking`, `Sign` and `Width`, combined with `&` and `|`, and `lars` has
`LarsStable`. `rule` has what they share, `errors` the bounds of their errors, `verdicts` what
follows from a bound, and `looks` accounts for looking repeatedly. `parse` reads rules such as
"top5".
"""
