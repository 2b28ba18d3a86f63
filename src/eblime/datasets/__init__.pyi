from eblime.datasets import imagenet as imagenet
from eblime.datasets import ultrasonic as ultrasonic
from eblime.datasets.imagenet import class_names as class_names
from eblime.datasets.imagenet import coffee as coffee
from eblime.datasets.imagenet import efficientnet_lite0 as efficientnet_lite0
from eblime.datasets.ultrasonic import sample_scans as sample_scans
from eblime.datasets.ultrasonic import ultrasonic_network as ultrasonic_network
