"""Pictures of explanations: Explanation -> matplotlib Axes.

Every function draws on the axes it is given, or on new ones, and returns them; none calls `show`.
Colours are Okabe and Ito's, told apart by colour-blind people and, by lightness, in grey print.
"""
