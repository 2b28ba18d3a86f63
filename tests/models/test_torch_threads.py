"""Explaining with a network that several threads share."""

import copy
import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eblime

torch = pytest.importorskip("torch")

N_THREADS = 16
GRID = ("grid", {"rows": 3, "columns": 4})


def network():
    """A network whose scores depend on eval mode: Dropout and BatchNorm."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(32, 5),
    )


def images(n):
    """Small colour images."""
    rng = np.random.default_rng(0)
    return list(rng.integers(0, 256, size=(n, 16, 20, 3), dtype=np.uint8))


def explainer(net):
    """A quick explainer that wraps the network again."""
    return eblime.ImageExplainer(net, segmentation=GRID, hide=0, n_masks=40)


def at_once(tasks):
    """Run functions in 16 threads that start together."""
    gate = threading.Barrier(N_THREADS)

    def work(task, first):
        if first:
            gate.wait(timeout=60)
        return task()

    with ThreadPoolExecutor(N_THREADS) as pool:
        futures = [pool.submit(work, task, k < N_THREADS) for k, task in enumerate(tasks)]
        return [future.result() for future in futures]


def state_of(net):
    """Everything that explaining must not change."""
    tensors = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    layout = [(tensor.data_ptr(), tensor.stride()) for tensor in net.parameters()]
    return tensors, layout, [part.training for part in net.modules()]


def assert_same_state(net, before):
    """Weights, BatchNorm statistics, memory layout and mode are unchanged."""
    tensors, layout, training = state_of(net)
    for name, tensor in before[0].items():
        assert torch.equal(tensors[name], tensor), name
    assert layout == before[1]
    assert training == before[2]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("shared", ["explainer", "module"])
def test_threads_get_the_scores_of_a_single_thread(training, shared):
    """16 threads, one network: the same scores as one thread, and an unchanged network."""
    net = network().train(training)
    photos = images(N_THREADS)
    one = explainer(net)
    alone = [one.explain(photo, target=1).scores for photo in photos]
    before = state_of(net)
    tasks = [
        lambda photo=photo: (one if shared == "explainer" else explainer(net)).explain(
            photo, target=1
        )
        for photo in photos
    ]
    threaded = [found.scores for found in at_once(tasks)]

    assert_allclose(threaded, alone, atol=1e-5)
    assert_same_state(net, before)


def test_networks_with_a_common_backbone_exclude_each_other():
    """Every submodule is locked, not only the outermost one."""
    backbone = network()
    heads = [torch.nn.Sequential(backbone, torch.nn.Linear(5, 3)) for _ in range(2)]
    photos = images(N_THREADS)
    explainers = [
        explainer(eblime.TorchModel(head.train(), activation="softmax")) for head in heads
    ]
    alone = [explainers[k % 2].explain(photo, target=1).scores for k, photo in enumerate(photos)]
    before = state_of(backbone)
    tasks = [
        lambda k=k, photo=photo: explainers[k % 2].explain(photo, target=1)
        for k, photo in enumerate(photos)
    ]

    assert_allclose([found.scores for found in at_once(tasks)], alone, atol=1e-5)
    assert_same_state(backbone, before)


def test_batches_are_scored_in_eval_mode_in_every_thread():
    """Calling the model locks it, as explaining does."""
    net = network().train()
    model = eblime.TorchModel(net)
    batch = np.stack(images(4))
    alone = model(batch)
    before = state_of(net)

    for scores in at_once([lambda: model(batch)] * (4 * N_THREADS)):
        assert_allclose(scores, alone, atol=1e-6)
    assert_same_state(net, before)


def test_a_thread_may_use_the_network_while_it_explains():
    """A thread that holds the lock can take it again."""
    model = eblime.TorchModel(network())
    photo = images(1)[0]
    seen = []
    eblime.ImageExplainer(
        model,
        segmentation=GRID,
        hide=0,
        n_masks=40,
        progress=lambda done, total: seen.append(model(photo[None])),
    ).explain(photo)

    assert len(seen) > 0


def test_a_model_can_be_copied_and_pickled_while_it_is_used():
    """Locks are not stored in the model."""
    model = eblime.TorchModel(network().eval())
    batch = np.stack(images(2))
    scores = model(batch)

    assert_allclose(copy.deepcopy(model)(batch), scores, atol=1e-6)
    assert_allclose(pickle.loads(pickle.dumps(model))(batch), scores, atol=1e-6)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_inherit_a_held_lock():
    """After a fork while another thread explains, the child has its own locks."""
    from eblime.models.torch import evaluation

    net = network()
    held, done = threading.Event(), threading.Event()

    def hold():
        with evaluation(net):
            held.set()
            done.wait(timeout=60)

    def enter():
        with evaluation(net):
            pass

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(timeout=60)
        child = multiprocessing.get_context("fork").Process(target=enter)
        child.start()
        child.join(timeout=60)
        code = child.exitcode
        if code is None:
            child.kill()
            child.join()
    finally:
        done.set()
        holder.join()

    assert code == 0
