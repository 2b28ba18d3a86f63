"""Boxes of detectors and regions of label maps as targets."""

import base64
import io
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

import eblime
from eblime.plot.maps import target_mask
from eblime.reporting.views import thumbnail
from eblime.scores import Box, Region, overlap, parse_score

torch = pytest.importorskip("torch")

GRID = ("grid", {"rows": 4, "columns": 4})
LABELS = ["background", "red", "green"]


def photo():
    """A red square in cell 5 and a green one in cell 10 of a grid of 4 x 4 cells."""
    image = np.full((32, 32, 3), 40, dtype=np.uint8)
    image[8:16, 8:16, 0] = 240
    image[16:24, 16:24, 1] = 240
    return image


class Detector(torch.nn.Module):
    """Finds coloured squares as torchvision's detectors do: the box around the coloured pixels."""

    def forward(self, images):
        """One dictionary per image."""
        found = []
        for image in images:
            boxes, scores, labels = [], [], []
            for channel, other in ((0, 1), (1, 0)):
                rows, columns = torch.nonzero(image[channel] - image[other] > 0.3, as_tuple=True)
                if len(rows):
                    corners = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
                    boxes.append([int(corner) for corner in corners])
                    scores.append(float(image[channel][rows, columns].mean()))
                    labels.append(channel + 1)
            found.append(
                {
                    "boxes": torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
                    "scores": torch.tensor(scores),
                    "labels": torch.tensor(labels, dtype=torch.int64),
                }
            )
        return found


class Segmenter(torch.nn.Module):
    """Logits (n, 3, H, W) of background, red and green, as torchvision's {"out": ...}."""

    def forward(self, images):
        """Logits by name."""
        red, green = images[:, 0], images[:, 1]
        return {"out": 8 * torch.stack([torch.full_like(red, 0.4), red - green, green - red], 1)}


def detect(images):
    """The detector as a function from arrays to lists of dictionaries."""
    return Detector()(torch.from_numpy(images).permute(0, 3, 1, 2) / 255)


def padded(images):
    """The detector with arrays of fixed size: (n, 3, 4), (n, 3) and (n, 3)."""
    boxes, scores, labels = np.zeros((len(images), 3, 4)), *np.zeros((2, len(images), 3))
    for i, found in enumerate(detect(images)):
        m = len(found["scores"])
        boxes[i, :m], scores[i, :m] = found["boxes"], found["scores"]
        labels[i, :m] = found["labels"]
    return boxes, scores, labels


def named(images):
    """The same arrays by name, in another order, with one that is not needed."""
    boxes, scores, labels = padded(images)
    return {"labels": labels, "masks": scores, "scores": scores, "boxes": boxes}


def one_table(images):
    """One array (n, M, 6)."""
    boxes, scores, labels = padded(images)
    return np.concatenate([boxes, scores[..., None], labels[..., None]], axis=2)


def explainer(model, **settings):
    """An explainer with a grid, so that the truth is known."""
    settings = {"segmentation": GRID, "hide": 40, "labels": LABELS, "n_masks": 150} | settings
    return eblime.ImageExplainer(model, progress=False, **settings)


def slow_score(found, label, box):
    """The score of a box by its definition, in plain Python."""
    best = 0.0
    for (x0, y0, x1, y1), score, name in zip(*found, strict=True):
        width = max(0.0, min(x1, box[2]) - max(x0, box[0]))
        height = max(0.0, min(y1, box[3]) - max(y0, box[1]))
        common = width * height
        union = (x1 - x0) * (y1 - y0) + (box[2] - box[0]) * (box[3] - box[1]) - common
        if name == label:
            best = max(best, common / union * score)
    return best


def test_score_of_a_box_is_the_best_overlap_times_confidence(rng):
    """Against the literal definition, on random boxes."""
    low = rng.uniform(0, 20, (40, 2))
    boxes = np.hstack([low, low + rng.uniform(1, 12, (40, 2))])
    scores, labels = rng.uniform(0, 1, 40), rng.integers(0, 3, 40)
    score = Box(1, (5, 6, 15, 18))
    output = [{"boxes": boxes, "scores": scores, "labels": labels}]
    settled, wanted = score.settle(output, (40, 40), int)

    assert_allclose(
        settled.read(output, 1, wanted),
        slow_score((boxes.tolist(), scores.tolist(), labels.tolist()), 1, (5, 6, 15, 18)),
    )
    assert_allclose(overlap(boxes, boxes[0])[0], 1.0)


@pytest.mark.parametrize("model", [Detector(), detect, padded, named, one_table])
def test_the_planted_object_is_found_in_every_form(model):
    """The red square is one cell: it has the score, and nothing else matters much."""
    e = explainer(model).explain(photo(), target=Box("red", (8, 8, 16, 16)))

    assert e.label == "box of 'red' (8, 8, 16, 16)"
    assert e.prediction == pytest.approx(240 / 255, rel=1e-5)
    assert e.posterior.order()[0] == 5
    assert_allclose(e.posterior.mean, np.where(np.arange(16) == 5, e.prediction, 0), atol=0.02)


def test_the_own_box_of_the_detector_is_used_and_said():
    """Without a box, that with the highest confidence in the input."""
    e = explainer(Detector()).explain(photo(), target=Box("green"))

    assert e.label == "box of 'green' (16, 16, 24, 24)"
    assert e.posterior.order()[0] == 10
    assert "largest overlap (IoU) x confidence" in e.provenance["input"]["score"]
    assert explainer(Detector()).explain(photo(), target="box:green").label == e.label


def test_several_boxes_share_the_model_calls():
    """Two boxes cost as much as one, and give the same numbers as alone."""
    seen = []

    def counted(images):
        seen.append(len(images))
        return detect(images)

    made = explainer(counted)
    both = made.explain_targets(photo(), [Box("red"), Box("green")])
    cost = sum(seen)
    alone = made.explain(photo(), target=Box("green"))

    assert cost == sum(seen) - cost
    assert_allclose(both[1].posterior.mean, alone.posterior.mean, atol=1e-9)
    assert [both[k].posterior.order()[0] for k in (0, 1)] == [5, 10]
    assert "top_classes" not in both[0].provenance


@pytest.mark.parametrize("mask", [True, False])
def test_region_is_the_mean_probability_inside(mask):
    """Against the softmax by hand; the network's own region is where the label wins."""
    inside = np.zeros((32, 32), dtype=bool)
    inside[8:16, 8:16] = True
    target = Region("red", inside if mask else None)
    e = explainer(eblime.TorchModel(Segmenter())).explain(photo(), target=target)
    logits = 8 * np.array([0.4, 200 / 255, -200 / 255])
    expected = np.exp(logits[1]) / np.exp(logits).sum()

    assert e.label == "region of 'red' (64 pixels)"
    assert e.prediction == pytest.approx(expected, rel=1e-4)
    assert e.posterior.order()[0] == 5
    assert "softmax" in e.provenance["input"]["score"]


def test_designs_are_compared_on_the_same_box():
    """The second design asks about the box as well, not about an output with its number."""
    made = replace(explainer(Detector()), n_masks=200)
    found = eblime.compare(
        None, photo(), ["eblime", "lime+bernoulli"], explainer=made, target=Box("green")
    )

    assert {e.label for e in found.explanations.values()} == {"box of 'green' (16, 16, 24, 24)"}
    assert [e.posterior.order()[0] for e in found.explanations.values()] == [10, 10]


def test_region_of_probabilities_and_of_other_layouts():
    """Probabilities are taken as they are, also channels last, half as large, or one map."""
    image = photo()

    def probabilities(images):
        return np.moveaxis(images[..., :2] / 255, -1, 1)

    first = explainer(probabilities).explain(image, target=Region(0))
    last = explainer(lambda images: images[..., :2] / 255).explain(image, target=Region(0))
    half = explainer(lambda i: probabilities(i)[:, :, ::2, ::2]).explain(image, target=Region(0))
    one = explainer(lambda images: images[..., 0] / 255).explain(image, target=Region(1))

    for e in (first, last, half):
        assert "mean score" in e.provenance["input"]["score"]
        assert e.prediction == pytest.approx(first.prediction)
    assert one.prediction == pytest.approx(240 / 255)
    assert one.posterior.order()[0] == 5


def test_files_json_and_more_keep_the_box(tmp_path):
    """A loaded explanation knows its box, draws it, and is continued with it."""
    made = explainer(Detector(), n_masks=60)
    for target in (Box("red"), Region("red")):
        if isinstance(target, Region):
            made = explainer(Segmenter(), n_masks=60)
        e = made.explain(photo(), target=target)
        loaded = eblime.load(e.save(tmp_path / "e.eblime"))
        more = loaded.more(40, explainer=made, x=photo())

        assert loaded.label == e.label
        assert more.posterior.n_masks == len(e.masks) + 40
        assert more.label == e.label
        assert_allclose(more.scores[: len(e.masks)], e.scores)
        assert len(e.more(40).masks) == len(e.masks) + 40
        assert 'class="target"' in loaded.to_html()
        assert "stroke-dasharray" in loaded._repr_html_()
        score = json.loads(e.to_json())["score"]
        assert (score["kind"], score["label"]) == (type(target).__name__.lower(), "red")


def test_a_damaged_box_in_a_file_is_refused():
    """A scene with a box outside its image, or a region of another size."""
    from dataclasses import replace

    from eblime.domains.image.scene import IMAGE

    scene = explainer(Detector()).explain(photo(), target=Box("red")).scene
    IMAGE.check_scene(scene)
    for wrong in (
        [{"kind": "box", "label": "red", "box": [0, 0, 99, 5]}],
        [{"kind": "box", "label": "red", "box": [0, 0, "a", 5]}],
        [{"kind": "region", "label": "red", "mask": np.ones((3, 3), np.uint8), "activation": ""}],
        ["box"],
    ):
        with pytest.raises(ValueError, match="must"):
            IMAGE.check_scene(replace(scene, scores=wrong))


def test_answers_of_another_box_are_not_taken_from_the_cache(tmp_path):
    """The key has the box: another box asks again, the same box does not."""
    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="squares")
    made = explainer(detect, cache=cache)
    first = made.explain(photo(), target=Box("red"))
    again = made.explain(photo(), target=Box("red"))
    other = made.explain(photo(), target=Box("red", (8, 8, 16, 24)))

    assert again.provenance["model_calls"] == 2  # the box is read, and one is asked again
    assert_allclose(first.scores, again.scores)
    assert other.provenance["model_calls"] > 50
    assert other.prediction == pytest.approx(first.prediction / 2)


def test_runs_explain_the_own_box_of_every_image(tmp_path):
    """Each image has its own best box; the run resumes."""
    other = np.roll(photo(), 8, axis=1)
    made = explainer(Detector(), n_masks=60)
    run = eblime.explain_many(
        made, [photo(), other], tmp_path / "run", targets=[Box("red")], progress=False, part_size=1
    )
    again = eblime.explain_many(
        made, [photo(), other], tmp_path / "run", targets=["box:red"], progress=False, part_size=1
    )
    labels = run.frame().drop_duplicates("input")["label"].tolist()

    assert labels == ["box of 'red' (8, 8, 16, 16)", "box of 'red' (16, 8, 24, 16)"]
    assert again.explanation(1).posterior.order()[0] == 6
    with pytest.raises(TypeError, match="must be the network's own"):
        eblime.explain_many(
            made, [photo()], tmp_path / "r", targets=[Region("red", np.ones((32, 32)))]
        )


def test_texts_of_the_command_line():
    """Labels may have colons; numbers are four."""
    assert parse_score("box:traffic light:1,2,3,4") == Box("traffic light", (1, 2, 3, 4))
    assert parse_score("box:a:b") == Box("a:b")
    assert parse_score(parse_score("box:a:1.5,2,3,4").text) == Box("a", (1.5, 2, 3, 4))
    assert parse_score("region:road").label == "road"
    assert parse_score("a box") == "a box"
    with pytest.raises(ValueError, match=r"must be four numbers.*; got \(1.0, 2.0\)"):
        parse_score("box:a:1,2")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (lambda: Box("red", (0, 0, 40, 8)), "must lie inside the image, which has 32 columns"),
        (lambda: Box("red", (8, 8, 4, 9)), "x0 < x1"),
        (lambda: Box("red", (8, 8, 4)), "four numbers"),
        (lambda: Box("blue"), "`target` must be among `labels`"),
        (lambda: Box("background"), r"finds no box of 'background' in the input; it found .* 1, 2"),
        (lambda: Region("red", np.zeros((32, 32))), "at least one pixel"),
        (lambda: Region("red", np.ones((8, 8))), r"size of the image, \(32, 32\); got \(8, 8\)"),
        (lambda: Region("red", np.full((32, 32), 2)), "zeros and ones"),
        (lambda: Region("red"), r"must return one map per class.*For a detector, explain a box"),
    ],
)
def test_bad_targets_are_refused(target, message):
    """What must hold, what came."""
    with pytest.raises(ValueError, match=message):
        explainer(Detector()).explain(photo(), target=target())


def test_outputs_of_unknown_form_are_refused():
    """A classifier has no boxes; boxes in other units or formats are named."""
    wrong = {
        "must return a list with a dictionary of `boxes`": lambda i: i.mean(axis=(1, 2)),
        "boxes in pixels": lambda i: [{"boxes": [[0, 0, 0.5, 1]], "scores": [1], "labels": [1]}],
        "or sizes": lambda i: [{"boxes": [[9, 9, 5, 5]], "scores": [1], "labels": [1]}],
        "boxes of four numbers": lambda i: [{"boxes": [[0, 5, 5]], "scores": [1], "labels": [1]}],
        "one score and one label per box": lambda i: (
            [{"boxes": [[0, 0, 5, 5]], "scores": [1, 2], "labels": [1]}]
        ),
    }
    for message, model in wrong.items():
        with pytest.raises(ValueError, match=message):
            explainer(model).explain(photo(), target=Box("red"))
    single = explainer(lambda images: tuple(part[0] for part in padded(images)))
    with pytest.raises(eblime.ModelError, match="batch_size=1"):
        single.explain(photo(), target=Box("red"))
    calls = eblime.Calls(batch_size=1)
    assert single.explain(photo(), target=Box("red"), calls=calls).posterior.order()[0] == 5


def test_a_box_without_an_object_warns():
    """The score is 0: there is nothing to explain."""
    with pytest.warns(UserWarning, match="finds no box of 'red'"), warnings.catch_warnings():
        explainer(Detector(), n_masks=40).explain(photo(), target=Box("red", (0, 0, 4, 4)))


def test_refusals_name_the_scores():
    """A network whose output is a map, or boxes, says what to use."""
    with pytest.raises(eblime.ModelError, match=r"eblime\.scores\.Region"):
        explainer(Segmenter()).explain(photo())
    with pytest.raises(eblime.ModelError, match=r"eblime\.scores\.Box"):
        explainer(Detector()).explain(photo())
    with pytest.raises(TypeError, match="all boxes and regions, or none"):
        explainer(Detector()).explain_targets(photo(), [Box("red"), 1])
    with pytest.raises(TypeError, match="For an image alone"):
        eblime.TextExplainer(lambda texts: [1.0] * len(texts)).explain("a b", target=Box("red"))


def test_onnx_detector_with_three_outputs(tmp_path):
    """Outputs by name, a fixed batch of one, without a choice of the output."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, numpy_helper

    boxes = np.array([[8, 8, 16, 16]], dtype=np.float32)
    nodes = [
        helper.make_node("Slice", ["image", "from", "to", "axes"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["mean"], keepdims=0),
        helper.make_node("Reshape", ["mean", "one"], ["2770"]),
        helper.make_node("Constant", [], ["boxes"], value=numpy_helper.from_array(boxes)),
        helper.make_node("Constant", [], ["2771"], value=numpy_helper.from_array(np.array([1]))),
    ]
    known = {"from": [0, 8, 8], "to": [1, 16, 16], "axes": [1, 2, 3], "one": [1]}
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 32, 32])],
        [
            helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, 4]),
            helper.make_tensor_value_info("2771", TensorProto.INT64, [1]),
            helper.make_tensor_value_info("2770", TensorProto.FLOAT, [1]),
        ],
        [numpy_helper.from_array(np.array(part), name) for name, part in known.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(made, str(tmp_path / "detector.onnx"))
    model = eblime.as_model(tmp_path / "detector.onnx")
    cache = tmp_path / "answers.db"
    e = explainer(model, cache=cache).explain(photo(), target=Box("red"))
    again = explainer(model, cache=cache).explain(photo(), target=Box("red"))

    assert e.posterior.order()[0] == 5
    assert e.prediction == pytest.approx(240 / 255)
    assert again.provenance["model_calls"] == 2
    with pytest.raises(eblime.ModelError, match=r"returns 3 outputs.* explain a box"):
        explainer(model).explain(photo())


@pytest.mark.parametrize("of", ["importance", "uncertainty", "top_k"])
def test_maps_show_the_target(of):
    """The box is a dashed line, the region a dashed contour."""
    for model, target in ((Detector(), Box("red")), (Segmenter(), Region("red"))):
        e = explainer(model, n_masks=40).explain(photo(), target=target)
        plain = explainer(lambda images: images.mean(axis=(1, 2)), n_masks=40).explain(photo())

        lines = [entry for entry in e.plot("map", of=of).collections if _is_mark(entry)]
        assert len(lines) == 1
        assert not any(_is_mark(entry) for entry in plain.plot("map", of=of).collections)


def _is_mark(entry):
    from matplotlib.colors import to_rgba

    from eblime.plot.style import MARK

    colours = entry.get_edgecolor()
    return len(colours) > 0 and np.allclose(colours[0], to_rgba(MARK))


@pytest.mark.parametrize(
    ("model", "target"), [(Detector(), Box("red")), (Segmenter(), Region("red"))]
)
def test_thumbnails_outline_the_target(model, target):
    """The border of the red square, and nothing outside it."""
    e = explainer(model).explain(photo(), target=target)
    pictures = []
    for shown in (e, replace(e, target=9)):
        kind, _, code = thumbnail(shown).partition(";base64,")
        pictures.append(np.asarray(Image.open(io.BytesIO(base64.b64decode(code)))).astype(int))
    changed = np.abs(pictures[0] - pictures[1]).max(axis=-1)

    assert kind == "data:image/jpeg"
    assert changed[8, 8:16].min() > 60
    assert changed[10:14, 10:14].mean() < changed[8:16, 8:16].mean()
    assert changed[:, 18:].max() < 20
    assert target_mask(e).sum() == 64
    assert target_mask(replace(e, target=9)) is None
