"""The model card, ``README.md``: what a person should know before using a bridge.

Everything in it comes from the bridge itself; programs read ``bridge.json`` and never this text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from isthmus.bridge.calibration import Calibration
from isthmus.bridge.provenance import Provenance
from isthmus.bridge.scope import INSIDE
from isthmus.evaluate.report import Report, Value
from isthmus.spaces import Space

if TYPE_CHECKING:
    from isthmus.bridge.bridge import Bridge

__all__ = ["write_card"]

VERDICTS = {
    "pre_aligned": "The two spaces meet without help: doing nothing is as good as any map.",
    "bridge": "The bridge keeps enough to be used for what is listed below.",
    "insufficient_pairs": "There were too few pairs to tell; do not rely on this bridge yet.",
    "reindex": "No map keeps enough; embed the collection again with the target's model.",
}

TEMPLATE = """\
# Bridge from {source} to {target}

{what}

## Verdict

**{status}**. {verdict}

- Reason: {reason}
- Usable for: {usable_for}
- Map: {method}; {chosen_because}
{pairs_needed}
## Held-out numbers

{numbers}

## Spaces

| | model | revision | dimension | metric | unit length | fingerprint |
|---|---|---|---|---|---|---|
{spaces}

## Pairs

{rows} Kind of the source rows: {source_kind}; of the target rows: {target_kind}.
{coverage}
## Limits

- One way only: it does not lead from {target} back to {source}.
- Fitted on rows of kind {source_kind}; rows of another kind are carried too, and flagged.
- The numbers above hold for rows like the pairs. About {outside:.0%} of such rows lie outside the
  scope; a set with many more outside is another domain, where nothing was measured.
- Scores through the bridge are not native scores. {calibrated}

## Safety

A bridge makes stored vectors as sensitive as the text they came from: with it, tools made for the
target model (inversion, classifiers, search) also work on vectors of the source model. Give it the
same protection as the text.

The hashes in `bridge.json` show accidental or clumsy changes. They are no signature: whoever can
rewrite the files can rewrite the hashes.

## Use

```python
from isthmus import Bridge, VectorSet

bridge = Bridge.load("path of this folder")
mapped = bridge.apply(VectorSet.load("vectors.npz"))
```

Made {created} with seed {seed}; {versions}.

Hash: `{hash}`
"""

MEASURED = """\
Measured on {n_queries:,} rows that the map was not fitted on; 95 % intervals in brackets. The null
map does nothing: what it reaches is no merit of the bridge.
"""


def write_card(bridge: Bridge) -> str:
    """Return the card as Markdown."""
    verdict, made = bridge.verdict, bridge.provenance
    return TEMPLATE.format(
        source=_text(bridge.source.model),
        target=_text(bridge.target.model),
        what=_what(bridge.lands_in),
        status=verdict.status,
        verdict=VERDICTS[verdict.status],
        reason=_text(verdict.reason),
        usable_for=", ".join(map(_text, verdict.usable_for)) or "nothing",
        method=_text(bridge.method),
        chosen_because=_text(verdict.chosen_because) or "it was asked for",
        pairs_needed=_pairs_needed(verdict.pairs_needed),
        numbers=_numbers(bridge.report),
        spaces=f"{_space('source', bridge.source)}\n{_space('target', bridge.target)}",
        rows=_rows(made),
        source_kind=_text(made.source_kind),
        target_kind=_text(made.target_kind),
        coverage=_coverage(made.coverage or {}),
        outside=1 - INSIDE,
        calibrated=_calibrated(bridge.calibration),
        created=_text(made.created),
        seed=made.seed,
        versions=_text(", ".join(f"{name} {made.libraries[name]}" for name in made.libraries)),
        hash=bridge.hash,
    )


def _what(lands_in: str) -> str:
    if lands_in == "target":
        return (
            "A fitted map carries vectors of the source model into the space of the target model."
        )
    return (
        "A fitted map carries vectors of both models into one comparison space; it cannot search "
        "an index of the target model as it is."
    )


def _rows(made: Provenance) -> str:
    """Say what the map was fitted on."""
    more = f"{made.n_unpaired_source:,} source rows and {made.n_unpaired_target:,} target rows"
    if not made.paired:
        return f"Fitted without pairs, on {more}; pairs, where there were any, only measured it."
    weighted = " with weights" if made.weighted else ""
    said = f"{made.n_pairs:,} pairs{weighted}, chosen: {_text(made.strategy)}."
    beside = made.n_unpaired_source or made.n_unpaired_target
    return f"{said} Beside them {more} without a pair." if beside else said


def _pairs_needed(count: int | None) -> str:
    return "" if count is None else f"- Pairs that it would take: about {count:,} or more\n"


def _calibrated(curve: Calibration) -> str:
    if not curve.n_scores:
        return "Too few pairs to learn a calibration."
    return (
        f"On held-out rows they\n  differ by {curve.error_before:.3f} on average, and by "
        f"{curve.error_after:.3f} once calibrated."
    )


def _numbers(report: Report) -> str:
    if not report.values:
        return "There were too few pairs to measure anything."
    oracle = bool(report.oracle)
    measured = MEASURED.format(n_queries=report.n_queries)
    lines = [
        measured,
        "| measure | bridge | null map |" + " oracle |" * oracle,
        "|---|---|---|" + "---|" * oracle,
    ]
    for name, value in report.values.items():
        cells = [_text(name), _shown(value), _cell(report.null, name)]
        cells += [_cell(report.oracle, name)] * oracle
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(values: Mapping[str, Value], name: str) -> str:
    return _shown(values[name]) if name in values else "-"


def _shown(value: Value) -> str:
    if not np.isfinite(value.mean):
        return "undefined"
    if not (np.isfinite(value.low) and np.isfinite(value.high)):
        return f"{value.mean:.3f}"
    return str(value)


def _space(side: str, space: Space) -> str:
    unit = "yes" if space.normalized else "no"
    return (
        f"| {side} | {_text(space.model)} | {_text(space.revision) or '-'} | {space.dim} | "
        f"{space.metric} | {unit} | `{space.fingerprint[:16]}` |"
    )


def _coverage(report: Mapping[str, object]) -> str:
    """Say what share of each side lies near a pair, where that was measured."""
    shares = []
    for side in ("source", "target"):
        values = report.get(side)
        covered = values.get("covered") if isinstance(values, Mapping) else None
        if isinstance(covered, float):
            shares.append(f"{covered:.0%} of the {side} rows")
    return f"\nWithin reach of a pair: {', '.join(shares)}.\n" if shares else ""


def _text(text: str) -> str:
    """Show a text of the artifact's maker on one line, without any markup of its own."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return re.sub(r"([\\`*<>|]|(?<=\])\()", r"\\\1", flat)
