"""
Does the hiding matter?
=======================

To hide a superpixel, something must replace it: its mean colour, a blurred copy, black. One scan
with a defect, explained with each. The printed table says how far they agree with the first, and
how far another seed would.
"""

import eblime
from eblime.datasets import sample_scans, ultrasonic_network

found = eblime.compare(
    ultrasonic_network(),
    sample_scans()[0][2],
    hide=["mean", "blur", 0],
    segmentation=("slic", {"n_segments": 40}),
    labels=["no defect", "with defect"],
    n_masks=200,
)
print(found.sensitivity_table())
for note in found.notes():
    print(note)
fig = found.pictures()
