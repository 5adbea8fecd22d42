"""What a notebook shows of an estimator: scikit-learn's diagram, and below it a short table of what was learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fishergraph._errors import InputError

# The colours are those of the notebook, so the table suits light and dark ones. Notebooks align cells to the right.
_STYLE = """
.fishergraph-summary { font-size: 0.85em; margin: 0.3em 0 0.6em 0.4em; color: inherit; }
.fishergraph-summary p { margin: 0.2em 0; }
.fishergraph-summary table { border-collapse: collapse; margin: 0.3em 0; background: transparent; font: inherit; }
.fishergraph-summary :is(th, td) {
  border: 0; border-bottom: 1px solid rgba(128, 128, 128, 0.35); padding: 0.15em 0.8em 0.15em 0;
  text-align: left; background: transparent; color: inherit;
}
.fishergraph-summary .number { text-align: right; }
"""


@dataclass(frozen=True)
class Summary:
    """What was learned: some lines, and a table with a name above each column."""

    facts: tuple[str, ...]
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()

    def html(self) -> str:
        """The lines and the table; every text is escaped."""
        facts = "".join(f"<p>{escape(fact)}</p>" for fact in self.facts)
        table = ""
        if self.rows:
            numbers = [isinstance(cell, (int, float)) for cell in self.rows[0]]
            head, body = _row(self.columns, "th", numbers), "".join(_row(row, "td", numbers) for row in self.rows)
            table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
        return f'<style>{_STYLE}</style><div class="fishergraph-summary">{facts}{table}</div>'


def _row(cells: Sequence[Any], tag: str, numbers: Sequence[bool]) -> str:
    """A row; integers have commas, and columns of numbers are aligned to the right."""
    parts = []
    for cell, number in zip(cells, numbers, strict=True):
        text = f"{cell:,}" if isinstance(cell, int) else f"{cell:.4g}" if isinstance(cell, float) else str(cell)
        look = ' class="number"' if number else ""
        parts.append(f"<{tag}{look}>{escape(text)}</{tag}>")
    return f"<tr>{''.join(parts)}</tr>"


class Diagram:
    """A base of estimators that adds the table to scikit-learn's diagram; `_summary` says what is in it."""

    def _summary(self) -> Summary | None:
        """What was learned, or None before the fit."""
        raise NotImplementedError

    def _repr_html_inner(self) -> str:
        return self._with_summary(_next(self)._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle = _next(self)._repr_mimebundle_(**options)
        return {kind: self._with_summary(text) if kind == "text/html" else text for kind, text in bundle.items()}

    def _with_summary(self, diagram: str) -> str:
        summary = self._summary()
        return diagram if summary is None else diagram + summary.html()

    @property
    def _sk_visual_block_(self) -> Callable[[], Any]:
        """What scikit-learn asks for a box, if no parameter is an estimator; it would draw components as such."""
        if any(hasattr(value, "__sklearn_tags__") for value in vars(self).values()):
            raise AttributeError("_sk_visual_block_")
        return _one_box

    def _get_params_html(self, deep: bool = True, *args: Any, **options: Any) -> Any:
        """The parameters alone: the options of components would all be marked as changed."""
        return _next(self)._get_params_html(False, *args, **options)

    def _get_fitted_attr_html(self, *args: Any, **options: Any) -> Any:
        """The fitted attributes; none if a parameter was changed after the fit, which some of them refuse."""
        try:
            return _next(self)._get_fitted_attr_html(*args, **options)
        except InputError:
            return {}


def _one_box() -> Any:
    """Fail: scikit-learn then draws one box with the parameters."""
    raise NotImplementedError


def _next(estimator: Diagram) -> Any:
    """The estimator as scikit-learn's base class, whose versions differ in their methods."""
    return super(Diagram, estimator)
