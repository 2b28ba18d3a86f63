"""Models are recognised by their content where it is certain, and need a name elsewhere."""

import functools
import os
import pickle
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import eblime
from eblime._digest import UnknownContentError
from eblime.models.adapt import as_model
from eblime.models.identity import fingerprint

ROWS = np.random.default_rng(0).random((50, 3))
LABELS = (ROWS[:, 0] > 0.5).astype(int)


def identity(model):
    """The fingerprint of a model as an explainer wraps it."""
    return fingerprint(as_model(model))


# --- everything that has the user's own code in it ------------------------------------------------

WEIGHTS, TABLE = [1.0, 2.0, 3.0], defaultdict(float, a=1.0)


def reads_a_list(rows):
    """A function that also writes to a list of its own."""
    out = []
    out.append(rows @ np.array(WEIGHTS))
    return out[0]


def reads_a_table(rows):
    """A function that reads a dictionary."""
    return TABLE["a"] * rows[:, 0]


@functools.lru_cache
def slope():
    """A helper that remembers."""
    return float(os.environ.get("SLOPE", "1"))


def reads_the_environment(rows):
    """A function whose helper reads the environment."""
    return slope() * rows[:, 0]


async def service(rows):
    """The client of a service."""
    return rows[:, 0]


class Fitted:
    """A model whose `fit` sets an attribute."""

    def fit(self, column):
        """Learn."""
        self.coef = np.eye(3)[column]
        return self

    def predict(self, rows):
        """Predict."""
        return rows @ self.coef


def from_package(name):
    """A package, or skip the test."""
    return pytest.importorskip(name)


def own_estimator():
    """A subclass of an estimator."""
    linear = from_package("sklearn.linear_model")

    class Own(linear.LinearRegression):
        def predict(self, rows):
            return 2 * super().predict(rows)

    return Own().fit(ROWS, LABELS)


def pipeline(step):
    """A pipeline that begins with a step."""
    linear = from_package("sklearn.linear_model")
    pipe = from_package("sklearn.pipeline").make_pipeline(step, linear.LogisticRegression())
    return pipe.fit(ROWS, LABELS)


class Doubling:
    """A step of a pipeline."""

    def fit(self, rows, labels=None):
        """Nothing to learn."""
        return self

    def transform(self, rows):
        """Twice the numbers."""
        return 2 * rows


def function_step():
    """A step that calls a function of the user's."""
    return pipeline(from_package("sklearn.preprocessing").FunctionTransformer(np.vectorize(abs_)))


def abs_(number):
    """A function."""
    return abs(number)


def kernel_machine():
    """An estimator with a function as a setting."""
    return from_package("sklearn.svm").SVC(kernel=lambda a, b: a @ b.T).fit(ROWS, LABELS)


def changed_estimator():
    """An estimator whose method was replaced."""
    model = from_package("sklearn.linear_model").LogisticRegression().fit(ROWS, LABELS)
    model.predict_proba = lambda rows: np.stack([rows[:, 0], 1 - rows[:, 0]], axis=1)
    return model


def network():
    """A network of torch's own layers, with the same weights every time."""
    torch = from_package("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2)).eval()


def own_layer():
    """A network with a layer of the user's own."""
    torch = from_package("torch")

    class Own(torch.nn.Module):
        def forward(self, x):
            return 2 * x

    return torch.nn.Sequential(network(), Own())


def hooked_network():
    """A network whose outputs a hook changes."""
    net = network()
    net[1].register_forward_hook(lambda module, inputs, outputs: 2 * outputs)
    return net


def replaced_forward():
    """A network with another forward function."""
    net = network()
    net.forward = lambda x: x[:, :2]
    return net


def function_in_a_network():
    """A network with a function as an attribute."""
    net = network()
    net.scale = lambda x: 2 * x
    return net


def traced_network():
    """A network as recorded code."""
    torch = from_package("torch")
    return torch.fx.symbolic_trace(network())


def scripted_network():
    """A network as compiled code."""
    torch = from_package("torch")
    module = torch.jit.ScriptModule
    net = network()
    net.inner = module()
    return net


def preprocessed_network():
    """A function before a network."""
    from eblime.models.torch import TorchModel

    return TorchModel(network(), preprocess=lambda x: 2 * x)


@pytest.mark.parametrize(
    "create",
    [
        lambda: lambda rows: rows[:, 0],
        lambda: reads_a_list,
        lambda: reads_a_table,
        lambda: reads_the_environment,
        lambda: slope,
        lambda: service,
        lambda: functools.partial(reads_a_list),
        lambda: functools.partial(np.sum, axis=1),
        lambda: np.frompyfunc(abs_, 1, 1),
        lambda: np.vectorize(abs_),
        lambda: np.linalg.det,
        lambda: Fitted().fit(0),
        lambda: Fitted().fit(0).predict,
        lambda: eblime.KerasModel(network=lambda batch, training: batch),
        own_estimator,
        lambda: own_estimator().predict,
        lambda: pipeline(Doubling()),
        function_step,
        kernel_machine,
        changed_estimator,
        own_layer,
        hooked_network,
        replaced_forward,
        function_in_a_network,
        traced_network,
        scripted_network,
        preprocessed_network,
    ],
)
def test_models_with_code_of_the_users_need_a_name(create):
    """What code does can depend on anything; so can functions, wherever they come from."""
    with pytest.raises(UnknownContentError):
        identity(create())


# --- torch ----------------------------------------------------------------------------------------


def keep_the_sum(net):
    """Torch does not count this as a new version, and the sum is the same."""
    net[1].weight.data[0, 0] += 1.0
    net[1].weight.data[0, 1] -= 1.0


def number(net):
    """A plain attribute."""
    net[1].scale += 1


def tensor(net):
    """A tensor that is no parameter."""
    net[1].offset[0] += 1


def buffer(net):
    """A buffer that is not in the state dict."""
    net[1].hidden[0] += 1


def listed(net):
    """A module in a list, which torch does not see."""
    net[1].others[0].weight.data[0, 0] += 1


@pytest.mark.parametrize("change", [keep_the_sum, number, tensor, buffer, listed])
def test_everything_in_a_network_counts(change):
    """Also what is not in its state dict."""
    torch = pytest.importorskip("torch")

    def create():
        net = network()
        net[1].scale, net[1].offset = 3, torch.zeros(2, dtype=torch.bfloat16)
        net[1].others = [torch.nn.Linear(2, 2)]
        net[1].register_buffer("hidden", torch.zeros(2), persistent=False)
        return net

    net = create()
    before = identity(net)

    assert identity(create()) == before
    change(net)
    assert identity(net) != before


def test_the_same_network_is_recognised():
    """After training back, and in the layout that it has while it is asked; settings count."""
    torch = pytest.importorskip("torch")
    from eblime.models.torch import TorchModel

    net = network()
    before = identity(net)
    net[1].weight.data += 1
    net.load_state_dict(network().state_dict())
    assert identity(net) == before
    assert fingerprint(TorchModel(net, activation="none")) != before
    assert identity(torch.nn.Sequential(torch.nn.Flatten(start_dim=0), net[1])) != before
    photos = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    plain = identity(photos)
    assert identity(photos.to(memory_format=torch.channels_last)) == plain


# --- estimators -----------------------------------------------------------------------------------


def estimators():
    """Estimators of several kinds, unfitted."""
    ensemble = from_package("sklearn.ensemble")
    neighbors = from_package("sklearn.neighbors")
    linear, preprocessing = (
        from_package("sklearn.linear_model"),
        from_package("sklearn.preprocessing"),
    )
    steps = (preprocessing.FunctionTransformer(np.log1p), linear.LogisticRegression())
    yield ensemble.RandomForestClassifier(3, random_state=0)
    yield ensemble.HistGradientBoostingClassifier(max_iter=3, random_state=0)
    yield neighbors.KNeighborsClassifier()
    yield from_package("sklearn.pipeline").make_pipeline(*steps)
    for name, settings in (
        ("lightgbm.LGBMClassifier", {"n_estimators": 3, "verbose": -1}),
        ("xgboost.XGBClassifier", {"n_estimators": 3}),
        ("catboost.CatBoostClassifier", {"iterations": 3, "verbose": 0}),
    ):
        package, _, kind = name.partition(".")
        try:
            yield getattr(__import__(package), kind)(**settings)
        except ImportError:
            continue


@pytest.mark.filterwarnings("ignore:`model` is the method `predict`")
def test_estimators_are_compared_by_their_content(tmp_path, monkeypatch):
    """Another fit is another model; calls and reading it from a file change nothing."""
    monkeypatch.chdir(tmp_path)  # CatBoost writes files
    for model in estimators():
        before = identity(model.fit(ROWS, LABELS))
        model.predict_proba(ROWS)
        assert identity(model) == before
        loaded = pickle.loads(pickle.dumps(model))
        assert identity(loaded) == identity(pickle.loads(pickle.dumps(loaded)))
        assert identity(model.predict_proba) == identity(model.predict_proba)
        assert identity(model.predict_proba) != identity(model.predict)
        assert identity(model.fit(ROWS, 1 - LABELS)) != before


@pytest.mark.slow
def test_texts_are_classified_by_the_same_model_in_another_process():
    """A vectorizer has the address of an object among its attributes."""
    pytest.importorskip("sklearn")
    code = (
        "from sklearn.feature_extraction.text import TfidfVectorizer\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from eblime.models.adapt import as_model\n"
        "from eblime.models.identity import fingerprint\n"
        "model = make_pipeline(TfidfVectorizer(), LogisticRegression())\n"
        "before = fingerprint(as_model(model.fit(['good', 'bad'], [0, 1])))\n"
        "model.predict(['good'])\n"
        "print(before, fingerprint(as_model(model)) == before)\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(found) == 1
    assert found.pop().endswith("True\n")


# --- ONNX -----------------------------------------------------------------------------------------


def write_graph(path, value, data=None):
    """A graph that multiplies by a number, which may be stored in another file."""
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = np.full(600, value, dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", kind, ["n", 600])],
        [helper.make_tensor_value_info("y", kind, ["n", 600])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    if data is not None:
        onnx.external_data_helper.convert_model_to_external_data(model, location=data)
    onnx.save(model, path)


def load(path):
    """The model in a file."""
    from eblime.models.onnx import OnnxModel

    return OnnxModel.load(path)


def test_onnx_files_are_compared_by_their_bytes(tmp_path):
    """A file that changed after it was loaded, or a session, needs a name."""
    for name, value in (("a", 2.0), ("b", 2.0), ("c", 3.0)):
        write_graph(tmp_path / f"{name}.onnx", value)
    first, same, other = (load(tmp_path / f"{name}.onnx") for name in "abc")

    assert fingerprint(first) == fingerprint(same) != fingerprint(other)
    write_graph(tmp_path / "b.onnx", 4.0)
    with pytest.raises(UnknownContentError, match="has changed since it was loaded"):
        fingerprint(same)
    with pytest.raises(UnknownContentError, match="does not say which files"):
        fingerprint(type(first)(session=first.session))


def test_external_data_of_any_name_count(tmp_path):
    """Whether they change before the model is loaded or afterwards."""
    path, data = tmp_path / "net.onnx", tmp_path / "numbers.bin"
    write_graph(path, 2.0, "numbers.bin")
    first = load(path)
    before, graph = fingerprint(first), path.read_bytes()
    data.write_bytes(np.full(600, 5, dtype=np.float32).tobytes())

    assert path.read_bytes() == graph
    with pytest.raises(UnknownContentError, match="has changed since it was loaded"):
        fingerprint(first)
    assert fingerprint(load(path)) != before


def test_every_tensor_of_an_onnx_file_is_found():
    """The table of messages has every way from a model to a tensor that ONNX knows."""
    onnx = pytest.importorskip("onnx")
    from eblime.models.onnx import _MESSAGES

    names = {
        **{"ModelProto": "model", "TrainingInfoProto": "training", "FunctionProto": "function"},
        **{"GraphProto": "graph", "NodeProto": "node", "AttributeProto": "attribute"},
        **{"SparseTensorProto": "sparse tensor", "TensorProto": "tensor"},
    }
    for message, name in names.items():
        fields = getattr(onnx, message).DESCRIPTOR.fields
        wanted = {
            field.number: names[field.message_type.name]
            for field in fields
            if field.message_type is not None and field.message_type.name in names
        }
        if message == "TensorProto":
            wanted = {
                onnx.TensorProto.DESCRIPTOR.fields_by_name["external_data"].number: "external data"
            }
        assert _MESSAGES[name] == wanted


@pytest.mark.parametrize("content", [b"", b"\x0b", b"\xff" * 20, b"\x3a\x7fshort", b"\x08\x01"])
def test_a_file_of_another_format_has_no_stamps(tmp_path, content):
    """It needs a name, if onnxruntime can read it at all."""
    from eblime.models.onnx import stamps_of

    file = tmp_path / "net.ort"
    file.write_bytes(content)

    assert stamps_of(file) is None
    assert stamps_of(Path(tmp_path / "missing.onnx")) is None
