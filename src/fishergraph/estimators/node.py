"""`FisherEmbedding`: the unsupervised embedding of the nodes of a graph, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fishergraph import _validation
from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import Verbose, progress_bar
from fishergraph._typing import GraphLike, MatrixLike, NodesLike, RandomState
from fishergraph._warn import each_warning_once
from fishergraph.costs import check_memory, stack_costs
from fishergraph.device import Device, choose_device, moved
from fishergraph.em.settings import EM
from fishergraph.estimators.arguments import features_and_graph, find_source
from fishergraph.estimators.asked import SomeNodes
from fishergraph.estimators.base import FisherTransformer, all_or_nothing, check_same, check_unchanged, make_layer
from fishergraph.estimators.inputs import InputSettings, NodeInput, check_no_graph, check_same_source, read_nodes
from fishergraph.estimators.model_checks import STACK_CHECKS, check_structural
from fishergraph.estimators.sourced import FromSource
from fishergraph.estimators.state import ModelState, encoder_part
from fishergraph.estimators.structure_input import StructureReader
from fishergraph.family import Family
from fishergraph.kernel_map import Kernel
from fishergraph.multiset import Rule, choose_multiset
from fishergraph.ops.engine import array_engine
from fishergraph.passes import Pass, side_by_side
from fishergraph.presets import Presets
from fishergraph.stack import STACK_PARAMETERS, Stack, stack_settings
from fishergraph.structural import Structure, choose_structure
from fishergraph.walk import Walk, choose_walk


class FisherEmbedding(Presets, FromSource, SomeNodes, FisherTransformer):
    """Embed the nodes of a graph, without labels, in one pass.

    Each layer takes the multiset of every node's neighbours, projects it onto a mixture by EM that starts at anchors
    learned from the data, and maps the whitened tangent vector by a kernel map. The output is the concatenation of
    blocks, whose inner product is the multilayer kernel (Eq. 2): "psi0" (the node's own features), "psi1", …, "psiT"
    (the layers), "walk" and "smooth" (features averaged over the whole graph), "factors" and "local" (the structure of
    the graph, without features).

    Parameters
    ----------
    n_layers : int, default=2
        Number of layers T; 0 gives the input maps alone.
    n_anchors : int, default=4
        Number of mixture components p of a layer.
    dim : int, default=256
        Width of every stage; fewer if the data hold fewer distinct points.
    multiset : str or component, default="neighbourhood"
        The multiset of a node: `Neighbourhood`, `Hops`, `PageRank` ("ppr"), `HeatKernel` ("heat"), `StepAverage`
        ("s2gc"), `Pairs`, `Paths` or `Tuples`. Their options hold edge weights and directions too:
        ``Neighbourhood(weights="symmetric", undirected=True)``.
    family : str or component, default="gaussian-mixture"
        The manifold: `GaussianMixture`, `DiagonalMixture`, `Gaussian`, `VonMisesFisherMixture` for directions, or
        `MultinomialMixture` for counts, whose first layer reads X as it is.
    em : EM, optional
        E-step, iterations, prior, and how anchors are learned. None is ``EM()``.
    kernel : {"exp", "identity"} or component, default="exp"
        The map ψ of a layer: ``Nystrom(bandwidth=1.5)``, or φ itself.
    walk : float, Walk or None, default=0.1
        Features averaged over the whole graph by PageRank: the teleport probability, or None to leave them out. They
        are the blocks "walk" and "smooth". Multisets of subgraphs and families of counts leave them out in any case.
    structure : str, Structure or None, default="auto"
        Columns from the edges alone, as blocks of a low weight beside X, and as the features for ``X=None``. "auto" is
        ``Structure(("factors", "local"))``; other kinds are "spectral", "projection" and "degree". None leaves them
        out, which saves a part of the time.
    normalize : bool, default=True
        Divide the rows of X, and the points of every layer, by their lengths.
    counts : bool, default=False
        Append the soft counts log(1 + mass), which tell {x} from {x, x}.
    block_weights : mapping or sequence of float, optional
        Weights of the blocks in Eq. 2, by name (``{"walk": 0, "local": 1}``) or one for each; 0 leaves a block out. The
        default is 1, and 0.1 for structural blocks beside X.
    device : str or Device, default="cpu"
        "cpu", "cuda" or "cuda:1", or ``Device("cuda", precision="bf16")``.
    random_state : int, RandomState or None, default=None
        Seed; every layer has its own stream.
    n_jobs : int, optional
        Threads; None uses every core. The result has the same bits at any number.
    verbose : bool or callable, default=False
        Show progress bars. A callable ``verbose(title, steps)`` returns a context manager with ``update(n)``; if it has
        a method ``expect``, that gets the costs of the parts by title first.

    Attributes
    ----------
    stack_ : Stack
        The fitted input map, walk and layers.
    multiset_ : Rule
        The multiset of the fit.
    structure_ : StructureMap or None
        What structural columns of other graphs need.
    structural_ : bool
        Whether the features came from the graph.
    needs_graph_ : bool
        Whether the fit had a graph, so that `transform` needs one.
    blocks_ : list of tuple
        Name and number of columns of every block of the output.
    encoder_ : TableEncoder or None
        What encodes a table X; None if X was an array, or a table of complete numbers.
    n_features_in_ : int
        Number of columns of X, after the encoding of a table.
    n_samples_fit_ : int
        Number of nodes of the fit.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had any.

    See Also
    --------
    FisherSetEmbedding : Embed sets of vectors.
    FisherGraphEmbedding : Embed whole graphs.
    FisherClassifier : Train the same layers on labels.
    Vectors : Nearest nodes, similarities of pairs and clusters of what it returns.
    LinkProbe : Learn which pairs of nodes have an edge.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding
    >>> from fishergraph.datasets import load_graph
    >>> cora = load_graph("cora")
    >>> FisherEmbedding(random_state=0).fit_transform(cora.X, graph=cora.graph).shape
    (2708, 1472)
    """

    _chosen: ClassVar[dict[str, Any]] = {
        **FisherTransformer._chosen,
        "multiset": choose_multiset,
        "walk": choose_walk,
        "structure": choose_structure,
    }
    _remembered: ClassVar[tuple[str, ...]] = ("n_features_in_", "n_samples_fit_", "structural_", "needs_graph_")

    def __init__(
        self,
        n_layers: int = 2,
        n_anchors: int = 4,
        dim: int = 256,
        *,
        multiset: str | Rule = "neighbourhood",
        family: str | Family = "gaussian-mixture",
        em: EM | None = None,
        kernel: str | Kernel = "exp",
        walk: float | Walk | None = 0.1,
        structure: str | Structure | None = "auto",
        normalize: bool = True,
        counts: bool = False,
        block_weights: Mapping[str, float] | Sequence[float] | None = None,
        device: str | Device = "cpu",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: Verbose = False,
    ):
        self.n_layers = n_layers
        self.n_anchors = n_anchors
        self.dim = dim
        self.multiset = multiset
        self.family = family
        self.em = em
        self.kernel = kernel
        self.walk = walk
        self.structure = structure
        self.normalize = normalize
        self.counts = counts
        self.block_weights = block_weights
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: MatrixLike = None, y: object = None, *, graph: GraphLike = None) -> Self:
        """Learn the input map, anchors and landmarks.

        Parameters
        ----------
        X : matrix of shape (n_nodes, n_features), table, or None
            Features, dense or CSR; row v belongs to node v. A table whose columns are not all complete numbers is
            encoded by a `TableEncoder`. None uses structural features of the graph. A torch tensor, dense or sparse
            CSR, must be on the `device`, and so is the result then. A graph, or a record of features and a graph, may
            also be passed as X alone, and so may a `fishergraph.scale.Store`.
        y : ignored
            Present for scikit-learn's API.
        graph : graph, optional
            Anything that `as_graph` takes; None makes every row its own multiset. Beside a tensor X also a (2, E)
            tensor (or a pair with weights), or `TensorSets`, the multisets themselves. If the nodes of an edge table
            have ids, the index of a DataFrame X names its rows; for ``X=None`` the rows are those of
            ``as_graph(table).ids``. Several kinds of edges are what `as_relations` takes; if nodes have several types,
            X is a mapping of these to features or None, and so is the result.

        Returns
        -------
        FisherEmbedding
            The fitted estimator.
        """
        if y is not None:
            check_no_graph(y, X, graph)
        self._fit(X, graph, want_output=False)
        return self

    def fit_transform(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, X: MatrixLike = None, y: object = None, *, graph: GraphLike = None
    ) -> Any:
        """Fit, and return the embedding of the same rows, in one pass.

        Parameters
        ----------
        X, y, graph : matrix, ignored, graph
            See `fit`.

        Returns
        -------
        array of shape (n_nodes, n_columns)
            One row per node.
        """
        if y is not None:
            check_no_graph(y, X, graph)
        return self._fit(X, graph, want_output=True)

    @each_warning_once()
    def transform(self, X: MatrixLike = None, *, graph: GraphLike = None, nodes: NodesLike = None) -> Any:
        """Return the embedding of all rows or some, of the same graph or another.

        Parameters
        ----------
        X, graph : matrix and graph
            See `fit`. A graph is needed if the fit had one, and must be left out if it had none.
        nodes : mask, ids or row numbers, optional
            The nodes that are wanted, whose neighbourhoods alone are computed: a mask with an entry for each row of X,
            the ids of nodes, or row numbers if the nodes have no ids. The result has their rows in that order, with
            the bits of a call without `nodes`. Structural columns and multisets are those of the whole graph. Of
            several types, a mapping of those that are wanted to their nodes; all rows are computed then.

        Returns
        -------
        array of shape (n_nodes, n_columns)
            One row per node.
        """
        check_is_fitted(self)
        if nodes is not None:
            return self._transform_part(X, graph, nodes)
        source, graph = find_source(X, graph)
        if source is not None:
            done = source.embed(self._job(self._unchanged(), source, graph))
            return self._named(done.output, done.ids)
        fitted, (rows, sets, workspace, ids, structural) = self._prepared(X, graph)
        check_memory(fitted, rows, sets, workspace, want_output=True)
        run = self._run(workspace, fitted.layer.em, partial(stack_costs, fitted, rows, sets, fitting=False))
        with one_blas_thread(), workspace.working(self.n_jobs):
            stack = moved(fitted, lambda array: workspace.put(array, rows.dtype))
            Z = side_by_side(Pass(stack, rows, sets, run, structural=structural), stack.widths)
            return self._named(sets.pooled(Z), ids)

    @all_or_nothing
    def _fit(self, X: MatrixLike, graph: GraphLike, *, want_output: bool) -> Any:
        source, graph = find_source(X, graph)
        if source is not None:
            return self._fit_source(source, graph, want_output=want_output)
        X, graph = features_and_graph(X, graph, fitting=True)
        self.structural_, self.needs_graph_, self.structure_, self.encoder_ = X is None, graph is not None, None, None
        settings, words = self.settings(features=X is not None, graph=graph is not None), self._seed_words()
        rows, sets, workspace, ids, structural = self._read(X, graph, settings, fitting=True, seed=words[0])
        self.n_samples_fit_ = rows.shape[0]
        check_memory(settings, rows, sets, workspace, want_output=want_output)
        run = self._run(workspace, settings.layer.em, partial(stack_costs, settings, rows, sets, fitting=True))
        seeds = np.random.SeedSequence(words).spawn(len(settings.block_weights))
        with one_blas_thread(), workspace.working(self.n_jobs):
            streams = list(map(workspace.stream, seeds))
            options: dict[str, Any] = {"structural": structural, "streams": streams, "want_last": want_output}
            fitting = Pass(settings, rows, sets, run, **options)
            Z = side_by_side(fitting, settings.asked_widths(rows.shape[1], sets)) if want_output else None
            for _ in () if want_output else fitting.stages():
                pass  # every stage is learned, and run if the next one needs it
            self.stack_ = moved(fitting.stack, workspace.fetch) if workspace.tensors else fitting.stack
            self.multiset_ = choose_multiset(self.multiset)
            if not want_output:
                return None
            return sets.pooled(Z) if ids is None else self._named(sets.pooled(Z), ids)

    def _unchanged(self) -> Stack:
        """The fitted stack with the weights of today; raises if another parameter was changed after the fit."""
        settings = self._settings_of(self.stack_.again)
        check_unchanged(self.stack_, settings, STACK_PARAMETERS)
        check_same({"multiset": self.multiset_}, {"multiset": choose_multiset(self.multiset)})
        return replace(self.stack_, block_weights=settings.block_weights)

    def _settings_of(self, make: Callable[..., Stack]) -> Stack:
        return self.settings(features=not self.structural_, graph=self.needs_graph_, make=make)

    def check(self) -> None:
        """Raise an `InputError` unless every parameter is valid."""
        self.settings()

    def settings(self, *, features: bool = True, graph: bool = True, make: Callable[..., Stack] = Stack) -> Stack:
        """Return the parameters as the settings of a stack, validated.

        Parameters
        ----------
        features : bool, default=True
            Whether there is X.
        graph : bool, default=True
            Whether there is a graph.
        make : callable, default=Stack
            The kind of stack.

        Returns
        -------
        Stack
            The settings, with nothing learned.
        """
        choose_device(self.device)
        rule, structure = choose_multiset(self.multiset), choose_structure(self.structure)
        n_layers = _validation.check_integer(self.n_layers, "n_layers", least=0, most=_validation.MOST_LAYERS)
        normalize = _validation.check_flag(self.normalize, "normalize")
        reading = "both" if _validation.check_flag(self.counts, "counts") else "means"
        parts: dict[str, Any] = {"family": self.family, "em": self.em, "kernel": self.kernel}
        layer = make_layer(self.n_anchors, self.dim, **parts, reading=reading, unit=normalize, rule=rule)
        given: dict[str, Any] = {"normalize": normalize, "features": features, "graph": graph, "make": make}
        return stack_settings(layer, n_layers, rule, choose_walk(self.walk), structure, self.block_weights, **given)

    def _read(self, X: MatrixLike, graph: GraphLike, settings: Stack, *, fitting: bool, seed: int = 0) -> NodeInput:
        """X, the graph and its structural columns, validated, in the workspace of the run."""
        progress, n_jobs = progress_bar(self.verbose), _validation.check_n_jobs(self.n_jobs)
        structure = choose_structure(self.structure) if settings.structure or X is None else None
        reader = StructureReader(structure, settings.layer.dim, X is not None, seed, self.structure_, n_jobs, progress)
        inputs = InputSettings(
            rule=choose_multiset(self.multiset),
            family=settings.layer.family,
            normalize=settings.normalize,
            device=choose_device(self.device),
            n_jobs=n_jobs,
            progress=progress,
            encode=partial(self._encode, fitting=fitting),
            check_columns=partial(self._check_columns, fitting=fitting),
        )
        read = read_nodes(X, graph, inputs, reader)
        self.structure_ = reader.fitted
        return read

    def _prepared(self, X: MatrixLike, graph: GraphLike) -> tuple[Stack, NodeInput]:
        """The fitted stack, and what `transform` reads."""
        fitted = self._unchanged().of_one_graph()
        X, graph = features_and_graph(X, graph, fitting=False)
        check_same_source(X, graph, structural=self.structural_, needs_graph=self.needs_graph_)
        return fitted, self._read(X, graph, fitted, fitting=False)

    def _state(self) -> dict[str, Any]:
        return {"stack": self.stack_, "structure": self.structure_, **encoder_part(self.encoder_)}

    def _restore(self, state: ModelState) -> None:
        self.multiset_ = rule = choose_multiset(self.multiset)
        self.stack_ = state.stack("stack", self._settings_of(state.stack_maker("stack")))
        structure, features = choose_structure(self.structure), not self.structural_
        self.structure_ = state.structure("structure", structure)
        self.encoder_ = state.encoder(self.n_features_in_)
        STACK_CHECKS[type(self.stack_)](self.stack_, rule.n_columns(self.n_features_in_), rule.slots)
        width = 0 if structure is None else structure.n_columns(self.stack_.layer.dim, features=features)
        check_structural(self.stack_, self.structure_, width, None if features else self.n_features_in_)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the columns, such as psi0_0, walk_0 and factors_0.

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn's API.

        Returns
        -------
        ndarray of str
            One name per column.
        """
        check_is_fitted(self)
        return self._unchanged().titles

    @property
    def blocks_(self) -> list[tuple[str, int]]:
        """Name and number of columns of every block of the output."""
        check_is_fitted(self)
        return self._unchanged().blocks


def transform_input(model: FisherEmbedding, X: MatrixLike, graph: GraphLike) -> tuple[Stack, NodeInput]:
    """The fitted stack and what `transform` reads, in host memory whatever the device of the model."""
    check_is_fitted(model)
    if hasattr(model.stack_, "layout"):
        expected, got = "be of one graph to be explained or made a table", "one of several relations"
        advice = "fit one on a single relation; blocks_ says which columns of Z[type] belong to which relation"
        raise InputError(parameter="model", value=model, expected=expected, got=got, advice=advice)
    on_host = copy(model).set_params(device="cpu")
    with array_engine():
        return on_host._prepared(X, graph)  # pyright: ignore[reportPrivateUsage]
