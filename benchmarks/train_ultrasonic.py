"""Train the network of the ultrasonic study, and write it and a few scans into the package.

Five layers: four convolutions and a linear one. It is trained on scans of the endless generator,
none of which is among the study's 123, and judged on those. About two minutes on two cores.

    pip install -e '.[test]' && python benchmarks/train_ultrasonic.py
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

import eblime
from eblime.datasets.networks import scan_layers, train_classifier
from eblime.datasets.ultrasonic import endless_scans, scans

ASSETS = Path(eblime.__file__).parent / "datasets" / "assets"
COUNT, EPOCHS = 1_200, 25


def generated(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures and whether they have a defect, a share of the training set."""
    made = list(islice(endless_scans(seed), COUNT // 4))
    return np.array([s.image for s in made]), np.array([s.has_defect for s in made])


def exported(net: torch.nn.Sequential) -> onnx.ModelProto:
    """The network as an ONNX graph, with a softmax at its end."""
    nodes, weights, name = [], [], "scan"
    for k, layer in enumerate(net):
        out = f"x{k}"
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)):
            for part, values in (("w", layer.weight), ("b", layer.bias)):
                weights.append(numpy_helper.from_array(values.detach().numpy(), f"{part}{k}"))
        if isinstance(layer, torch.nn.Conv2d):
            node = helper.make_node("Conv", [name, f"w{k}", f"b{k}"], [out], pads=[1, 1, 1, 1])
        elif isinstance(layer, torch.nn.ReLU):
            node = helper.make_node("Relu", [name], [out])
        elif isinstance(layer, torch.nn.MaxPool2d):
            node = helper.make_node("MaxPool", [name], [out], kernel_shape=[2, 2], strides=[2, 2])
        elif isinstance(layer, torch.nn.AdaptiveMaxPool2d):
            node = helper.make_node("GlobalMaxPool", [name], [out])
        elif isinstance(layer, torch.nn.Flatten):
            node = helper.make_node("Flatten", [name], [out])
        else:
            node = helper.make_node("Gemm", [name, f"w{k}", f"b{k}"], [out], transB=1)
        nodes.append(node)
        name = out
    nodes.append(helper.make_node("Softmax", [name], ["chance"], axis=1))
    entry = helper.make_tensor_value_info("scan", TensorProto.FLOAT, ["n", 1, 128, 128])
    end = helper.make_tensor_value_info("chance", TensorProto.FLOAT, ["n", 2])
    graph = helper.make_graph(nodes, "ultrasonic", [entry], [end], weights)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="eblime"
    )


def main() -> None:
    """Train, judge, write."""
    with ProcessPoolExecutor() as pool:
        parts = list(pool.map(generated, range(4)))
    images, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    net = scan_layers()
    train_classifier(net, images, labels.astype(np.int64), epochs=EPOCHS)
    ASSETS.mkdir(exist_ok=True)
    onnx.save(exported(net), ASSETS / "ultrasonic.onnx")
    model = eblime.OnnxModel.load(ASSETS / "ultrasonic.onnx")
    study = scans()
    truth = np.array([s.has_defect for s in study])
    found = model(np.array([s.image for s in study])).argmax(axis=1) == 1
    print(f"the study's {len(study)} scans: {np.mean(found == truth):.1%} right")
    few = [s for s in study if s.has_defect][:3] + [s for s in study if not s.has_defect][:1]
    np.savez_compressed(
        ASSETS / "scans.npz",
        images=np.array([s.image for s in few]),
        defects=np.array([s.defect for s in few]),
    )
    for path in sorted(ASSETS.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
