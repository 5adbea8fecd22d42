"""Epochs of a small graph as CUDA graphs: which runs are captured, and that nothing else about them changes."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph import EM  # noqa: E402
from fishergraph._errors import TrainingDiverged  # noqa: E402
from fishergraph.nn import FisherNet, train  # noqa: E402
from fishergraph.nn import capture as captures  # noqa: E402
from fishergraph.nn import loop as loops  # noqa: E402
from fishergraph.nn.batches import FullBatch, full_batch  # noqa: E402
from fishergraph.nn.capture import WARM_UP, EpochGraphs, can_capture  # noqa: E402
from fishergraph.nn.task import make_task  # noqa: E402
from fishergraph.ops.tensor_sets import TensorSets  # noqa: E402

CUDA = torch.device("cuda")
PLAIN = {"amp": None}


def example():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(30, 6, generator=generator), torch.arange(30) % 3
    return x, y, torch.randint(30, (2, 90), generator=generator)


def net(**options):
    torch.manual_seed(0)
    return FisherNet(6, 8, 2, 3, **{"head": "relu", "dropout": 0.5, **options})


def task_of(model, **edges):
    x, y, edge_index = example()
    return make_task(model, x, y, edges.get("edge_index", edge_index), None, range(15), range(15, 30))


def source_of(model):
    """The whole graph with its multisets, as `full_batch` makes it on a GPU."""
    task = task_of(model)
    return FullBatch(replace(task, edge_index=model.sets(task.edge_index, None, task.n_nodes)))


def run(model, **options):
    x, y, edge_index = example()
    return train(model, x, y, edge_index, train=range(15), val=range(15, 30), epochs=12, patience=None, **options)


class DefaultGenerator:
    """That of the CPU, in the words of one of a GPU."""

    def clone_state(self):
        return torch.default_generator.get_state()

    def graphsafe_set_state(self, state):
        torch.default_generator.set_state(state)


class Eager:
    """A captured step or its measures, computed anew at every replay."""

    def __init__(self, function, result):
        self.function, self.result = function, result

    def replay(self):
        for old, new in zip(self.result, self.function(), strict=True):
            old.copy_(new)


def eager_graphs(model, device, step, measures):
    """`capture_epoch` without CUDA: what it returns behaves as graphs do, results in the same tensors every time."""

    def again():
        model.train()
        model.zero_grad(set_to_none=True)
        return [step()]

    def measured():
        model.eval()
        return measures()

    loss, values = [torch.zeros(())], [torch.zeros((), dtype=torch.float64) for _ in range(4)]
    return EpochGraphs(Eager(again, loss), loss[0], Eager(measured, values), values)


def test_a_run_that_is_captured_is_the_same_run(monkeypatch):
    known, captured = run(net()), []

    def capture(*args):
        captured.append(len(args))
        return eager_graphs(*args)

    monkeypatch.setattr(loops, "can_capture", lambda *_: True)
    monkeypatch.setattr(loops, "capture_epoch", capture)
    model = net()
    found = run(model)
    assert captured == [4]
    names = ("epoch", "loss", "train_accuracy", "val_accuracy", "val_loss")
    assert [[row[name] for name in names] for row in found.rows] == [
        [row[name] for name in names] for row in known.rows
    ]


def test_the_first_epochs_run_as_ever(monkeypatch):
    epochs = []
    original = loops.Loop._eager_values

    def counted(self, number):
        epochs.append(number)
        return original(self, number)

    monkeypatch.setattr(loops, "can_capture", lambda *_: True)
    monkeypatch.setattr(loops, "capture_epoch", eager_graphs)
    monkeypatch.setattr(loops.Loop, "_eager_values", counted)
    run(net())
    assert epochs == list(range(1, WARM_UP + 1))


def test_a_run_whose_capture_fails_is_the_same_run(monkeypatch, caplog):
    known, tried = run(net()), []

    def fails(*args):
        tried.append(args)
        torch.rand(7)  # a step that was captured in part would have drawn nothing, and this one has
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loops, "can_capture", lambda *_: True)
    monkeypatch.setattr(captures, "_capture", fails)
    monkeypatch.setattr(captures, "_generator", lambda device: DefaultGenerator())
    found = run(net())
    assert len(tried) == 1
    assert "out of memory" in caplog.text
    assert [row["loss"] for row in found.rows] == [row["loss"] for row in known.rows]


def test_an_error_of_the_caller_is_not_a_failed_capture(monkeypatch):
    def interrupted(*args):
        raise TypeError("no capture")

    monkeypatch.setattr(captures, "_capture", interrupted)
    monkeypatch.setattr(captures, "_generator", lambda device: DefaultGenerator())
    with pytest.raises(TypeError, match="no capture"):
        captures.capture_epoch(net(), CUDA, None, None)


def test_a_value_that_is_not_finite_is_explained_after_a_capture(monkeypatch):
    def diverging(*args):
        graphs = eager_graphs(*args)
        graphs.loss.fill_(torch.nan)
        return replace(graphs, step=Eager(lambda: [torch.tensor(torch.nan)], [graphs.loss]))

    monkeypatch.setattr(loops, "can_capture", lambda *_: True)
    monkeypatch.setattr(loops, "capture_epoch", diverging)
    with pytest.raises(TrainingDiverged, match=f"epoch {WARM_UP + 1}"):
        run(net())


@pytest.mark.parametrize("head", ["relu", "linear", "nystrom"])
def test_which_runs_are_captured(head):
    model = net(head=head)
    source = source_of(model)
    assert can_capture(model, source, CUDA, PLAIN, 100)
    assert not can_capture(model, source, torch.device("cpu"), PLAIN, 100)
    assert not can_capture(model, source, CUDA, {"amp": "bf16"}, 100)
    assert not can_capture(model, source, CUDA, PLAIN, 3)
    assert not can_capture(model, FullBatch(task_of(model)), CUDA, PLAIN, 100), "multisets are made in every epoch"


@pytest.mark.parametrize(
    "options", [{"em": EM(e_step="balanced")}, {"family": "diagonal-mixture"}, {"pooling": "mean"}]
)
def test_what_waits_for_the_device_is_not_captured(options):
    model = net(**options)
    assert not can_capture(model, source_of(model), CUDA, PLAIN, 100)


def test_a_network_with_hooks_is_not_captured():
    model = net()
    model.convs[0].register_forward_hook(lambda *_: None)
    assert not can_capture(model, source_of(model), CUDA, PLAIN, 100)


def test_sparse_rows_and_other_models_are_not_captured():
    model = net()
    source = source_of(model)
    sparse = FullBatch(replace(source.task, x=source.task.x.to_sparse_csr()))
    assert not can_capture(model, sparse, CUDA, PLAIN, 100)
    assert not can_capture(torch.nn.Linear(6, 3), source, CUDA, PLAIN, 100)


def test_on_the_cpu_the_edges_stay_as_they_were_passed():
    model = net()
    task = task_of(model)
    assert full_batch(model, task).task is task


def losses(history):
    return [(row["loss"], row["val_loss"]) for row in history.rows]


@pytest.mark.gpu
@pytest.mark.parametrize("head", ["relu", "linear", "nystrom"])
def test_a_captured_run_has_the_history_of_one_that_is_not(monkeypatch, head):
    graphs = []

    def counted(*args):
        graphs.append(captures.capture_epoch(*args))
        return graphs[-1]

    monkeypatch.setattr(loops, "capture_epoch", counted)
    captured = run(net(head=head), device="cuda")
    assert [type(found) for found in graphs] == [EpochGraphs]
    monkeypatch.setattr(loops, "can_capture", lambda *_: False)
    assert losses(captured) == losses(run(net(head=head), device="cuda"))


def out_of_memory(loss):
    torch.empty(1 << 46, device="cuda")


def waits(loss):
    loss.item()


@pytest.mark.gpu
@pytest.mark.parametrize("what", [out_of_memory, waits])
def test_on_a_gpu_a_capture_that_fails_changes_nothing(monkeypatch, what):
    """It fails in the middle of a step, after dropout was drawn."""
    original = loops.Loop._gradients

    def failing(self, number):
        loss = original(self, number)
        what(loss)
        return loss

    monkeypatch.setattr(loops.Loop, "_gradients", failing)
    found = run(net(), device="cuda")
    monkeypatch.setattr(loops, "can_capture", lambda *_: False)
    assert losses(found) == losses(run(net(), device="cuda"))
    monkeypatch.undo()
    assert losses(run(net(), device="cuda")) == losses(found)  # a later capture works


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Sparse")
def test_on_a_gpu_sparse_rows_of_a_small_graph_are_captured_too():
    model = net().cuda()
    source = full_batch(model, replace(task_of(model), x=example()[0].to_sparse_csr()).to(CUDA))
    assert can_capture(model, source, CUDA, PLAIN, 100)


@pytest.mark.gpu
def test_on_a_gpu_multisets_are_made_once():
    model = net().cuda()
    assert isinstance(full_batch(model, task_of(model).to(CUDA)).task.edge_index, TensorSets)
