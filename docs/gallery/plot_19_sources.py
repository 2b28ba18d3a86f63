"""
The sources of an answer
========================

A model answers a question from seven notes. A toy stands for the language model here: it finds a
word of the answer likely if a note has it. The shading shows how much each note raises the
probability of the answer; the sign of underlined ones is certain.
"""

import re

import numpy as np

import eblime


class Toy:
    """Finds a word likely if a source has it."""

    def generate(self, prompts):
        """The same answer to all prompts."""
        return ["The lighthouse opened in 1902. It is 41 m high."] * len(prompts)

    def token_spans(self, answer):
        """Words with the space before them."""
        return [match.span() for match in re.finditer(r"\s*\S+", answer)]

    def token_log_probs(self, prompts, answer):
        """A word in the prompt is likely."""
        words = [answer[a:b].strip(" .") for a, b in self.token_spans(answer)]
        return [np.log([0.9 if word in prompt else 0.2 for word in words]) for prompt in prompts]


notes = [
    "The harbour has three piers and a fish market.",
    "The lighthouse opened in 1902 after four years of work.",
    "Our lighthouse, open since 1902, is worth a visit.",
    "Height of the tower above the ground: 41 m high.",
    "Fish soup, bread and coffee are served all day.",
    "Line 5 leaves every 20 minutes.",
    "The road to the beach is closed in May.",
]
explanation = eblime.PromptExplainer(Toy(), notes).explain("When was it built?")
ax = explanation.plot("text")
