"""`train`: what it learns, when it stops, what it leaves behind, how it goes on, and one sentence per fault."""

from __future__ import annotations

import csv
import json
import logging
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCN
from torch_geometric.nn.dense.linear import Linear

from fishergraph._errors import TrainingDiverged
from fishergraph.multiset import Multisets, Neighbourhood
from fishergraph.nn.conv import FisherConv
from fishergraph.nn.history import COLUMNS, History
from fishergraph.nn.loader import CSRNeighborLoader
from fishergraph.nn.models import FisherNet
from fishergraph.nn.training import train
from fishergraph.ops.tensor_edges import tensor_sets

N, D, C = 60, 6, 3


def community_graph():
    """Nodes of three communities that mostly know their own, with features that only hint at them."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % C
    ends = rng.integers(0, N, (2, 40 * N))
    ends = ends[:, (y[ends[0]] == y[ends[1]]) | (rng.random(ends.shape[1]) < 0.1)][:, : 6 * N]
    x = rng.normal(size=(N, D)) + 0.8 * np.eye(D)[y]
    x, y, edges = torch.from_numpy(x).float(), torch.from_numpy(y), torch.from_numpy(ends)
    nodes = torch.from_numpy(rng.permutation(N))
    return {"x": x, "y": y, "edge_index": edges, "train": nodes[:24], "val": nodes[24:40]}


DATA = community_graph()
LABELLED = torch.arange(N)
NAMED = torch.cat([DATA["train"], DATA["val"]])


def net(seed=0, **options):
    torch.manual_seed(seed)
    options = {"num_layers": 2, "out_channels": C, "num_anchors": 2, "dropout": 0.3, "head": "linear", **options}
    return FisherNet(D, 8, **options)


def fit(model, epochs=8, **options):
    return train(model, **{**DATA, "epochs": epochs, "lr": 0.05, "weight_decay": 0.0, **options})


def accuracy(model, nodes=slice(None), edges=DATA["edge_index"]):
    with torch.no_grad():
        return float((model.eval()(DATA["x"], edges).argmax(1) == DATA["y"])[nodes].float().mean())


def numbers(history):
    """The rows without the seconds."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in history.rows]


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


MODES = {"full": {}, "sampled": {"batch_size": 10, "num_neighbors": [4, 4]}}
each_mode = pytest.mark.parametrize("mode", MODES)


# --- learning -------------------------------------------------------------------------------------------


@each_mode
def test_it_learns_and_keeps_the_best_epoch(mode):
    model = net()
    before = accuracy(model, DATA["val"])
    history = fit(model, epochs=40, patience=None, **MODES[mode])
    assert history.best is not None
    best = max(history.rows, key=lambda row: (row["val_accuracy"], -row["val_loss"]))
    assert (history.best, history.best_epoch) == (best, best["epoch"])
    assert best["val_accuracy"] >= max(before + 0.2, 0.75)
    assert accuracy(model, DATA["val"]) == pytest.approx(best["val_accuracy"])
    assert accuracy(model, DATA["train"]) == pytest.approx(best["train_accuracy"])
    assert history.rows[-1]["loss"] < history.rows[0]["loss"]
    assert not model.training
    assert [tuple(row) for row in history.rows] == [COLUMNS] * 40


@each_mode
def test_the_first_loss_is_that_of_cross_entropy(mode):
    model = net(dropout=0.0)
    options = MODES[mode] if mode == "full" else {"batch_size": 24, "num_neighbors": -1}
    with torch.no_grad():
        logits = model.eval()(DATA["x"], DATA["edge_index"])
        expected = nn.functional.cross_entropy(logits[DATA["train"]], DATA["y"][DATA["train"]])
    assert fit(model, epochs=1, **options).rows[0]["loss"] == pytest.approx(float(expected), rel=1e-5)


def test_without_validation_nodes_all_epochs_are_run_and_the_last_is_kept():
    model = net()
    history = fit(model, epochs=5, val=None, patience=1)
    assert (len(history), history.best_epoch, history.stopped_early) == (5, 5, False)
    assert history.column("val_accuracy") == history.column("val_loss") == [None] * 5


def test_patience():
    history = fit(net(), epochs=300, patience=4)
    assert history.stopped_early
    assert len(history) == history.best_epoch + 4


def test_equal_accuracies_are_told_apart_by_their_losses():
    rows = [{"val_accuracy": a, "val_loss": b} for a, b in ((0.5, 1.0), (0.5, 0.9), (0.5, 0.9), (0.6, 2.0))]
    history = History(rows[:2], best_epoch=2)
    assert [history.beats(row) for row in rows] == [False, False, False, True]
    assert History(rows[:1], best_epoch=1).beats(rows[1])


@pytest.mark.parametrize("form", ["masks", "numpy", "sets", "multisets", "weights", "sparse x"])
def test_other_forms_of_the_same_task(form):
    edges, n = DATA["edge_index"], N
    changes = {
        "masks": {name: torch.isin(torch.arange(n), DATA[name]) for name in ("train", "val")},
        "numpy": {name: value.numpy() for name, value in DATA.items()},
        "sets": {"edge_index": tensor_sets(edges, n_sets=n, n_points=n)},
        "weights": {"edge_weight": torch.ones(edges.shape[1])},
        "sparse x": {"x": DATA["x"].to_sparse_csr()},
    }
    sets = changes["sets"]["edge_index"]
    changes["multisets"] = {"edge_index": Multisets(sets.indptr.numpy(), sets.indices.numpy(), None, n)}
    open_sets = form in ("sets", "multisets")  # they are taken as they are
    plain = fit(net(multiset=Neighbourhood(closed=not open_sets)), epochs=3)
    other = fit(net(), epochs=3, **changes[form])
    for one, two in zip(numbers(plain), numbers(other), strict=True):
        assert one == pytest.approx(two, rel=1e-4)


def test_a_model_of_pyg_in_both_modes():
    for mode in MODES.values():
        torch.manual_seed(0)
        history = fit(GCN(D, 16, 2, C), epochs=20, **mode)
        assert history.best["val_accuracy"] > 0.75


def test_a_width_of_the_first_input():
    torch.manual_seed(0)
    model = FisherNet(-1, 8, 1, C)
    assert len(fit(model, epochs=2)) == 2
    assert model(DATA["x"], DATA["edge_index"]).shape == (N, C)


@pytest.mark.parametrize("amp", [True, "bf16", "fp16"])
def test_lower_precision_learns_too(amp):
    model = net()
    history = fit(model, epochs=20, amp=amp)
    assert history.best["val_accuracy"] > 0.7
    assert {tensor.dtype for tensor in model.parameters()} == {torch.float32}
    assert history.rows[0]["loss"] != fit(net(), epochs=1).rows[0]["loss"]


def test_schedules():
    cosine = fit(net(), epochs=10, schedule="cosine").column("lr")
    assert cosine[0] == 0.05
    assert cosine == sorted(cosine, reverse=True)
    assert cosine[-1] < 0.005
    plateau = fit(net(), epochs=60, patience=None, schedule="plateau").column("lr")
    assert set(plateau) >= {0.05, 0.025}


# --- seeds ----------------------------------------------------------------------------------------------


@each_mode
def test_a_seed_decides_everything_and_nothing_else_is_touched(mode):
    runs = []
    for seed, noise in ((3, 0), (3, 1), (4, 0)):
        model = net()
        torch.manual_seed(noise)  # the caller's generator has no say
        before = torch.get_rng_state()
        history = fit(model, epochs=4, seed=seed, **MODES[mode])
        assert torch.equal(torch.get_rng_state(), before)
        runs.append((numbers(history), weights(model)))
    assert runs[0][0] == runs[1][0]
    assert same(runs[0][1], runs[1][1])
    assert runs[0][0] != runs[2][0]


# --- checkpoints ----------------------------------------------------------------------------------------


@each_mode
@pytest.mark.parametrize("schedule", [None, "cosine", "plateau"])
def test_a_resumed_run_has_the_same_numbers(tmp_path, mode, schedule):
    options = {"schedule": schedule, "patience": 3, "amp": "fp16" if schedule else False, **MODES[mode]}
    whole_model = net(head="relu")
    whole = fit(whole_model, epochs=9, **options)
    path = tmp_path / "run.checkpoint"
    first = net(head="relu")
    stop_after(first, 4, lambda: fit(first, epochs=9, checkpoint=path, checkpoint_every=100, **options))
    resumed_model = net(seed=9, head="relu")
    resumed = fit(resumed_model, epochs=9, checkpoint=path, resume=True, **options)
    assert numbers(resumed) == numbers(whole)
    assert (resumed.best_epoch, resumed.stopped_early) == (whole.best_epoch, whole.stopped_early)
    assert same(weights(resumed_model), weights(whole_model))


def test_the_scale_of_the_gradients_is_resumed(tmp_path, monkeypatch):
    """It begins far too high, and the first steps are left out until it has come down."""
    monkeypatch.setattr(torch.amp, "GradScaler", partial(torch.amp.GradScaler, init_scale=2.0**24))
    whole = fit(net(), epochs=24, amp="fp16", patience=None)
    assert numbers(whole)[0]["val_loss"] == numbers(whole)[1]["val_loss"] != numbers(whole)[-1]["val_loss"]
    fit(net(), epochs=18, amp="fp16", patience=None, checkpoint=tmp_path / "c")
    resumed = fit(net(), epochs=24, amp="fp16", patience=None, checkpoint=tmp_path / "c", resume=True)
    assert numbers(resumed) == numbers(whole)


def stop_after(model, n_epochs, work):
    """Run the work, and press Ctrl-C in the middle of epoch n_epochs + 1."""
    epochs = []
    mode = model.train

    def counted(training=True):
        epochs.extend([1] if training else [])
        if training and len(epochs) > n_epochs:
            raise KeyboardInterrupt
        return mode(training)

    model.train = counted
    try:
        return work()
    finally:
        del model.train


def test_more_epochs_go_on_from_the_end(tmp_path):
    path = tmp_path / "c"
    fit(net(), epochs=3, checkpoint=path)
    longer = fit(net(1), epochs=6, checkpoint=path, resume=True)
    assert numbers(longer) == numbers(fit(net(), epochs=6))
    again = fit(net(2), epochs=6, checkpoint=path, resume=True)  # nothing is left to do
    assert numbers(again) == numbers(longer)


def test_a_checkpoint_is_a_whole_file_of_arrays_and_json(tmp_path):
    from safetensors import safe_open

    fit(net(), epochs=3, checkpoint=tmp_path / "c", checkpoint_every=1)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    with safe_open(str(tmp_path / "c"), framework="numpy") as file:
        header = json.loads(file.metadata()["model"])
        assert {name.partition(".")[0] for name in file.keys()} == {"model", "best", "optimizer", "random"}  # noqa: SIM118
    assert len(header["history"]["rows"]) == 3


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_anew(tmp_path, caplog):
    whole, begun = net(), net()
    expected = numbers(fit(whole, epochs=3))
    assert numbers(fit(begun, epochs=3, checkpoint=tmp_path / "c", resume=True)) == expected
    assert same(weights(begun), weights(whole))
    assert f"no checkpoint at '{tmp_path / 'c'}' yet" in caplog.text


def test_a_checkpoint_that_does_not_fit(tmp_path):
    path = tmp_path / "c"
    with pytest.raises(ValueError, match="checkpoint"):
        fit(net(), resume=True)
    fit(net(), epochs=2, checkpoint=path)
    with pytest.raises(ValueError, match="lr"):
        fit(net(), epochs=2, lr=0.1, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="weights"):
        fit(net(num_anchors=3), epochs=2, checkpoint=path, resume=True)
    for changes, what in (
        ({"x": DATA["x"] + 1}, "data_checksum"),
        ({"edge_index": DATA["edge_index"].flip(0)}, "data_checksum"),
        ({"train": DATA["val"], "val": DATA["train"][:16]}, "n_train"),
        ({"val": torch.cat([DATA["val"][1:], LABELLED[~torch.isin(LABELLED, NAMED)][:1]])}, "split_checksum"),
    ):
        with pytest.raises(ValueError, match=what):
            fit(net(), epochs=2, checkpoint=path, resume=True, **changes)
    for other, what in ((net(dropout=0.1), r"model\.dropout"), (net().double(), "dtype=")):
        with pytest.raises(ValueError, match=what):
            fit(other, epochs=2, checkpoint=path, resume=True)
    path.write_bytes(b"\0" * 100)
    with pytest.raises(ValueError, match="checkpoint"):
        fit(net(), checkpoint=path, resume=True)
    with pytest.raises(FileNotFoundError, match="folder"):
        fit(net(), checkpoint=tmp_path / "absent" / "c")


def test_a_checkpoint_of_short_floats(tmp_path):
    path, model = tmp_path / "c", net().bfloat16()
    fit(model, epochs=2, checkpoint=path)
    assert {tensor.dtype for tensor in model.parameters()} == {torch.bfloat16}
    resumed, whole = net(1).bfloat16(), net().bfloat16()
    assert numbers(fit(resumed, epochs=4, checkpoint=path, resume=True)) == numbers(fit(whole, epochs=4))
    assert same(weights(resumed), weights(whole))


def test_a_disk_that_is_full_does_not_cost_the_weights(tmp_path, monkeypatch):
    def full(path, snapshot):
        raise OSError("no space left")

    monkeypatch.setattr("fishergraph.nn.loop.write_snapshot", full)
    model, whole = net(), net()
    with pytest.raises(OSError, match="no space"):
        fit(model, epochs=20, checkpoint=tmp_path / "c", checkpoint_every=100)
    assert fit(whole, epochs=20).best_epoch < 20
    assert same(weights(model), weights(whole))


# --- the ends of a run ----------------------------------------------------------------------------------


def test_ctrl_c_keeps_the_best_weights_and_the_caller_goes_on(tmp_path, caplog):
    model, reference = net(), net()
    fit(reference, epochs=5)
    with caplog.at_level(logging.WARNING):
        history = stop_after(model, 5, lambda: fit(model, epochs=50, checkpoint=tmp_path / "c", log=tmp_path / "l.csv"))
    assert history.interrupted
    assert len(history) == 5
    assert same(weights(model), weights(reference))
    assert not model.training
    assert "interrupted in epoch 6" in caplog.text
    assert len((tmp_path / "l.csv").read_text().splitlines()) == 6
    assert (tmp_path / "c").is_file()


def test_ctrl_c_in_the_first_epoch_leaves_the_model_as_it_came():
    model = net()
    before = weights(model)
    history = stop_after(model, 0, lambda: fit(model))
    assert (history.interrupted, history.best_epoch, history.best, len(history)) == (True, 0, None, 0)
    assert same(weights(model), before)


class Poison(nn.Module):
    """A layer that works for some epochs and then gives NaN in its output, or in its gradient."""

    def __init__(self, width, epochs, where):
        super().__init__()
        self.linear, self.left, self.where = Linear(width, width), epochs, where
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.seen += 1
        x = self.linear(x)
        if self.seen <= self.left:
            return x
        return x * float("nan") if self.where == "output" else x * (x - x).abs().sqrt().exp()


class Poisoned(nn.Module):
    def __init__(self, where, epochs=3):
        super().__init__()
        self.first, self.second, self.last = Linear(D, 5), Poison(5, epochs, where), Linear(5, C)

    def forward(self, x, edge_index):
        return self.last(self.second(self.first(x).relu()))


@pytest.mark.parametrize(
    ("where", "pattern"),
    [
        ("output", "'second'"),
        ("gradient", "'first.weight'"),
    ],
)
@pytest.mark.parametrize("val", [DATA["val"], None], ids=["validated", "not validated"])
def test_a_loss_that_is_not_finite_names_the_layer_and_keeps_the_last_good_epoch(tmp_path, where, pattern, val):
    torch.manual_seed(0)
    model = Poisoned(where)
    with pytest.raises(TrainingDiverged, match=pattern):
        fit(model, epochs=20, val=val, checkpoint=tmp_path / "c", log=tmp_path / "l.jsonl")
    torch.manual_seed(0)
    good = Poisoned(where)
    history = fit(good, epochs=3, val=val)
    assert same(weights(model), weights(good))
    rows = [json.loads(line) for line in (tmp_path / "l.jsonl").read_text().splitlines()]
    assert [row["loss"] for row in rows] == history.column("loss")
    torch.manual_seed(5)
    resumed = Poisoned(where, epochs=100)  # repaired
    assert len(fit(resumed, epochs=6, val=val, checkpoint=tmp_path / "c", resume=True)) == 6


# --- the log and the bar --------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_the_log_has_the_rows_also_of_the_run_that_is_resumed(tmp_path, suffix):
    log, checkpoint = tmp_path / f"log{suffix}", tmp_path / "c"
    fit(net(), epochs=2, checkpoint=checkpoint, log=log)
    history = fit(net(), epochs=4, checkpoint=checkpoint, resume=True, log=log)
    with log.open() as file:
        rows = list(csv.DictReader(file)) if suffix == ".csv" else [json.loads(line) for line in file]
    assert [{key: float(value) for key, value in row.items()} for row in rows] == history.rows


def test_progress_is_told_of_every_epoch():
    seen = []

    class Bar:
        def __enter__(self):
            return self

        def __exit__(self, *exception):
            seen.append("end")

        def update(self, n):
            seen.append(n)

        def set_postfix(self, **values):
            seen.append(sorted(values))

    fit(net(), epochs=2, progress=lambda title, steps: seen.append((title, steps)) or Bar())
    assert seen == [("training", 2), 0, ["best", "loss", "val"], 1, ["best", "loss", "val"], 1, "end"]


# --- loaders of one's own -------------------------------------------------------------------------------


def test_a_loader_of_ones_own():
    data = Data(x=DATA["x"], y=DATA["y"], edge_index=DATA["edge_index"])
    loader = CSRNeighborLoader(data, [4, 4], input_nodes=DATA["train"], batch_size=10, shuffle=True)
    history = fit(net(), epochs=20, loader=loader)
    assert history.best["val_accuracy"] > 0.7
    with pytest.raises(ValueError, match="loader"):
        fit(net(), loader=loader, batch_size=3)


def test_a_loader_without_features():
    data = Data(y=DATA["y"], edge_index=DATA["edge_index"], batch_size=4)
    with pytest.raises(ValueError, match="none of x"):
        fit(net(), loader=[data])
    with pytest.raises(ValueError, match="features"):
        CSRNeighborLoader(Data(edge_index=DATA["edge_index"], num_nodes=N), [4])


def test_loaders_that_are_no_neighbour_loaders():
    data = Data(x=DATA["x"], y=DATA["y"], edge_index=DATA["edge_index"])
    with pytest.raises(ValueError, match="several graphs"):
        fit(net(), loader=DataLoader([data]))
    with pytest.raises(ValueError, match="batch_size"):
        fit(net(), loader=[data])
    with pytest.raises(ValueError, match="epoch 1"):
        fit(net(), loader=[])
    loader = CSRNeighborLoader(data, [4, 4], input_nodes=DATA["train"], batch_size=10)
    with pytest.raises(ValueError, match="epoch 2"):
        fit(net(), loader=iter(loader))
    data.y = torch.full((N,), -1)
    with pytest.raises(ValueError, match="labels"):
        fit(net(), loader=CSRNeighborLoader(data, [4, 4], batch_size=10))


class Own(nn.Module):
    """A model of one's own, which knows nothing of hops."""

    def __init__(self, out=C):
        super().__init__()
        self.layer = FisherConv(D, out)

    def forward(self, x, edge_index, edge_weight=None):
        return self.layer(x, edge_index, edge_weight)


def test_a_model_of_ones_own_in_mini_batches():
    history = fit(Own(), epochs=30, batch_size=10, num_neighbors=[8], edge_weight=torch.ones(360))
    assert history.best["val_accuracy"] > 0.6
    with pytest.raises(ValueError, match="logits"):
        fit(Own(2))


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["edges", "sparse", "sets"])
@pytest.mark.parametrize("rule", [None, "symmetric"])
def test_batches_of_all_neighbours_are_the_whole_graph(form, rule):
    """Loops and weights are those of the whole graph: one batch of all training nodes is a full step."""
    weights = torch.linspace(0.5, 2, 360)
    sets = tensor_sets(DATA["edge_index"], n_sets=N, n_points=N, weights=weights)
    adjacency = torch.sparse_csr_tensor(sets.indptr, sets.indices, sets.weights, (N, N))
    edges = {"edges": DATA["edge_index"], "sparse": adjacency, "sets": sets}[form]
    given = {"edge_index": edges, "edge_weight": weights if form == "edges" else None}
    whole = fit(net(multiset=Neighbourhood(weights=rule), dropout=0.0), epochs=3, **given)
    batched = fit(
        net(multiset=Neighbourhood(weights=rule), dropout=0.0),
        epochs=3,
        batch_size=24,
        num_neighbors=np.int64(-1),
        **given,
    )
    assert batched.column("loss") == pytest.approx(whole.column("loss"), rel=1e-4)


def test_features_of_another_type():
    x, model = DATA["x"].double(), net()
    assert fit(model, epochs=2, x=x).column("loss") == fit(net(), epochs=2).column("loss")
    assert model(x, DATA["edge_index"]).dtype == torch.float32


# --- bad input ------------------------------------------------------------------------------------------


def changed(name, row, value):
    tensor = DATA[name].clone()
    tensor[row] = value
    return {name: tensor}


BAD = {
    "label out of range": (changed("y", 7, 3), "y must"),
    "label below": (changed("y", 7, -2), "row 7"),
    "no label": ({"y": torch.full((N,), -1)}, "label"),
    "labels of floats": ({"y": DATA["y"].float()}, "integer"),
    "too few labels": ({"y": DATA["y"][:-1]}, "60 nodes"),
    "overlap": ({"val": torch.cat([DATA["val"], DATA["train"][3:4]])}, "overlap"),
    "train without labels": (changed("y", DATA["train"][2], -1), "train"),
    "val without labels": (changed("y", DATA["val"][2], -1), "val"),
    "nothing to train on": ({"train": []}, "train"),
    "short mask": ({"train": torch.ones(9, dtype=torch.bool)}, "mask"),
    "node out of range": ({"val": [3, 60]}, "val"),
    "nodes of floats": ({"train": [0.5, 1.5]}, "train"),
    "class not in train": ({"train": DATA["train"][DATA["y"][DATA["train"]] != 1]}, "class 1"),
    "edges of floats": ({"edge_index": DATA["edge_index"].float()}, "edge_index"),
    "edge to nowhere": (changed("edge_index", (0, 5), 60), "60"),
    "transposed edges": ({"edge_index": DATA["edge_index"].T}, "edge_index"),
    "sets of other nodes": ({"edge_index": tensor_sets(DATA["edge_index"], n_sets=N, n_points=70)}, "edge_index"),
    "edge weights": ({"edge_weight": torch.ones(9)}, "weights"),
    "negative edge weight": ({"edge_weight": -torch.ones(360)}, "weights"),
    "other width": ({"x": DATA["x"][:, :4]}, "6 features"),
    "NaN": (changed("x", (4, 1), float("nan")), "row 4"),
    "features of integers": ({"x": DATA["x"].long()}, "float"),
    "no features": ({"x": None}, "features"),
    "a name": ({"schedule": "linear"}, "schedule"),
    "plateau without val": ({"schedule": "plateau", "val": None}, "plateau"),
    "precision": ({"amp": "int8"}, "amp"),
    "epochs": ({"epochs": 0}, "epochs"),
    "rate": ({"lr": 0.0}, "lr"),
    "log": ({"log": "rows.txt"}, "rows.txt"),
    "hops": ({"batch_size": 5, "num_neighbors": [3]}, "num_neighbors"),
    "hops without batches": ({"num_neighbors": [3, 3]}, "num_neighbors"),
    "a GPU that is not there": ({"device": "cuda:99"}, "cuda"),
    "an unknown device": ({"device": "gpu"}, "device"),
    "no labels": ({"y": None}, "y must"),
    "names": ({"y": ["a"] * N}, "y must"),
    "no training nodes": ({"train": None}, "train"),
    "all nodes": ({"train": "all"}, "train"),
    "no edges": ({"edge_index": None}, "edge_index"),
    "edges of SciPy": ({"edge_index": sp.eye_array(N, format="csr")}, "edge_index"),
    "sparse triples": ({"x": DATA["x"].to_sparse_coo()}, "CSR"),
    "all neighbours": ({"batch_size": 5, "num_neighbors": "all"}, "num_neighbors"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case):
    changes, pattern = BAD[case]
    model = net()
    before = weights(model)
    with pytest.raises((ValueError, TypeError, RuntimeError), match=pattern) as error:
        fit(model, **changes)
    assert str(error.value).count("\n") == 0
    assert same(weights(model), before)


def test_models_that_cannot_be_trained():
    with pytest.raises(TypeError, match="model"):
        fit(None)
    with pytest.raises(ValueError, match="parameters"):
        fit(net().requires_grad_(False))


def test_a_model_without_a_classifier():
    with pytest.raises(ValueError, match="classifier"):
        fit(FisherNet(D, 8, 2))


# --- on a GPU -------------------------------------------------------------------------------------------


@pytest.mark.gpu
@each_mode
@pytest.mark.parametrize("amp", [False, "bf16", "fp16"])
def test_a_gpu(tmp_path, mode, amp):
    options = {"device": "cuda", "amp": amp, "patience": None, "schedule": "cosine", **MODES[mode]}
    model = net()  # it seeds every device
    torch.cuda.manual_seed(5)
    before = torch.cuda.get_rng_state()
    history = fit(model, epochs=30, **options)
    assert torch.equal(torch.cuda.get_rng_state(), before)
    assert history.best["val_accuracy"] > 0.7
    assert next(model.parameters()).is_cuda
    first = net()
    stop_after(first, 15, lambda: fit(first, epochs=30, checkpoint=tmp_path / "c", **options))
    resumed = fit(net(3), epochs=30, checkpoint=tmp_path / "c", resume=True, **options)
    # Sums of scattered gradients have no order on a GPU, so the numbers agree but not the bits.
    for name in ("loss", "val_loss"):
        assert resumed.column(name)[:20] == pytest.approx(history.column(name)[:20], rel=0.02)


@pytest.mark.gpu
def test_a_loss_that_is_not_finite_on_a_gpu(tmp_path):
    torch.manual_seed(0)
    with pytest.raises(TrainingDiverged, match=r"epoch 4.*'second'"):
        fit(Poisoned("output"), epochs=20, device="cuda", checkpoint=tmp_path / "c")
    assert (tmp_path / "c").is_file()
