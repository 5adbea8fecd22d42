"""`FromSource`: the calls of an embedding on a graph that runs the work itself: a store, or several relations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from fishergraph import _validation
from fishergraph._errors import InputTypeError
from fishergraph._progress import progress_bar
from fishergraph._typing import GraphLike
from fishergraph.device import choose_device
from fishergraph.estimators.model_file import plain_params
from fishergraph.estimators.output import asked_output
from fishergraph.estimators.source import ChangingSource, NodeJob, Source
from fishergraph.multiset import choose_multiset
from fishergraph.stack import Stack
from fishergraph.structural import choose_structure


class FromSource:
    """The part of `FisherEmbedding` that fits on a source."""

    multiset: Any
    structure: Any
    structural_: bool
    structure_: Any
    encoder_: Any
    device: Any
    n_jobs: int | None
    verbose: Any
    get_params: Callable[..., dict[str, Any]]
    save: Callable[..., None]
    _settings_of: Callable[..., Stack]
    _seed_words: Callable[[], list[int]]
    _named: Callable[..., Any]
    _unchanged: Callable[[], Stack]

    def update(
        self,
        store: Any,
        *,
        edges: GraphLike = None,
        nodes: Any = None,
        remove: GraphLike = None,
        remove_nodes: Any = None,
        unknown: str = "error",
    ) -> Any:
        """Change the graph of a store, and its embedding by this model.

        Anchors and maps stay as they were learned, and rows are computed again only if the bits of an input changed.
        The embedding has the bytes of `transform` on the changed store; `transform` returns it. Embeddings of the store
        that other models made are brought up to date too.

        Parameters
        ----------
        store : Store
            The `fishergraph.scale.Store` that this model embedded. It shows the changed graph afterwards.
        edges, nodes, remove, remove_nodes : path or data, optional
            What comes, changes and goes: see `fishergraph.scale.update`.
        unknown : {"error", "drop", "add"}, default="error"
            What happens to edges that end at a node which is not there.

        Returns
        -------
        UpdateReport
            What changed, which rows were computed, and how far the new data are from those of the fit.

        See Also
        --------
        fishergraph.scale.update : The same for all embeddings of a store, without their models.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from fishergraph import FisherEmbedding, load_graph
        >>> from fishergraph.scale import write_store
        >>> cora = load_graph("cora")
        >>> store = write_store(pathlib.Path(tempfile.mkdtemp()) / "cora", cora.graph, cora.X)
        >>> model = FisherEmbedding(dim=16, walk=None, structure=None, random_state=0).fit(store)
        >>> model.update(store, edges=[(0, 5), (5, 0)]).changes["edges added"]
        2
        >>> model.transform(store).shape
        (2708, 48)
        """
        check_is_fitted(self)
        if not isinstance(store, ChangingSource) or not isinstance(store, Source):
            expected, advice = "be a fishergraph.scale.Store", "for a graph in memory, call transform"
            raise InputTypeError(parameter="store", expected=expected, got=type(store).__name__, advice=advice)
        self._job(self._unchanged(), store, None)
        changes = {"edges": edges, "nodes": nodes, "remove": remove, "remove_nodes": remove_nodes, "unknown": unknown}
        return store.update(**changes, model=self, n_jobs=self.n_jobs, verbose=self.verbose)

    def _fit_source(self, source: Source, graph: GraphLike, *, want_output: bool) -> Any:
        """Fit on a graph that runs the work itself, and return its embedding."""
        self.structural_, self.needs_graph_ = source.n_features == 0, True
        self.structure_, self.encoder_ = None, None
        settings = self._settings_of(source.make_stack(choose_multiset(self.multiset).undirected))
        job = self._job(settings, source, graph, self._seed_words())
        done = source.embed(replace(job, want_output=want_output))
        vars(self).pop("feature_names_in_", None)
        vars(self).update(done.fitted, multiset_=choose_multiset(self.multiset))
        if done.model is not None:
            self.save(done.model)
        return self._named(done.output, done.ids)

    def _job(self, stack: Stack, source: Source, graph: GraphLike, words: list[int] | None = None) -> NodeJob:
        """What a source runs; it learns if there are `words`."""
        structure = choose_structure(self.structure) if stack.structure or self.structural_ else None
        tables = asked_output(self) != "default"
        source.check_call(stack, graph, choose_device(self.device), structural=self.structural_, tables=tables)
        params, n_jobs = plain_params(self.get_params(deep=False)), _validation.check_n_jobs(self.n_jobs)
        parts = (stack, choose_multiset(self.multiset), structure, self.structure_)
        return NodeJob(*parts, params, words, n_jobs, progress_bar(self.verbose), encoder=self.encoder_)
