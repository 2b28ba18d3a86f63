"""Inputs explained as `explain` does, and several with shared model calls, as a run does."""

from eblime.engine.drive import drive, run
from eblime.engine.explain import explanations, fit_together
from eblime.engine.session import Session


def explain_alone(settings, subject, targets, rng):
    """Explanations of one input, by column."""
    session = Session.begin(settings, subject, targets, rng)
    run(session)
    return explanations(session)


def explain_together(settings, subjects, targets, rngs):
    """Explanations by column, for each input."""
    pairs = zip(subjects, rngs, strict=True)
    sessions = [Session.begin(settings, subject, targets, rng) for subject, rng in pairs]
    for ended in drive(sessions, together=len(sessions)):
        fit_together(ended)
    return [explanations(session) for session in sessions]
