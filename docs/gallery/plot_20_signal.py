"""
The window of a signal
======================

A toy detector finds a pulse in a noisy signal. Which windows raise its score? The pulse is between
0.84 and 0.92 s. Windows whose 95 % interval contains zero are hatched.
"""

import numpy as np

import eblime

rng = np.random.default_rng(0)
times = np.arange(2000) / 1000
pulse = np.sin(2 * np.pi * 50 * times[:80]) * np.hanning(80)
signal = np.sin(2 * np.pi * 3 * times) + 0.2 * rng.normal(size=2000)
signal[840:920] += 2 * pulse


def detector(batch):
    """The largest correlation with the pulse, as a probability."""
    match = np.array([np.abs(np.correlate(row, pulse, "valid")).max() for row in batch])
    return 1 / (1 + np.exp(-(match - 25) / 5))


explainer = eblime.SignalExplainer(detector, rate=1000, channels=["amplitude"], n_masks=200)
explanation = explainer.explain(signal)
ax = explanation.plot("signal")
