"""A second pass over a run, in which the inputs share a prior that is learnt from all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eblime._digest import digest_of
from eblime._threads import few_threads
from eblime.batch import folder as run_folder
from eblime.methods.eblime import EBLIME
from eblime.results.explanation import Explanation
from eblime.results.storage import pack

if TYPE_CHECKING:
    from eblime.batch.results import Run


def pool(run: Run) -> Run:
    """Fit all inputs again with a shared prior, and store them as a run in the folder `pooled`."""
    folder = run.location / "pooled"
    explained = run.frame(["input", "target", "name"]).drop_duplicates().groupby("input")
    names: dict[Any, str] = explained["name"].first().to_dict()
    targets: dict[Any, list[int]] = explained["target"].agg(list).to_dict()
    keys = [(number, target) for number in targets for target in targets[number]]
    kept = set((run.location / "explanations").files())
    lacking = sum(f"{number}-{target}.eblime" not in kept for number, target in keys)
    if lacking or not keys:
        raise ValueError(
            f"`pool` needs the whole explanations of all inputs; {lacking} of {len(keys)} are not "
            "saved. `explain_many(..., pool=True)` or keep=True (--keep) saves them."
        )
    method = run.explanation(*keys[0]).method
    if not isinstance(method, EBLIME) or method.grid is not None:
        raise ValueError(f"`pool` needs a run of EBLIME() without a grid; got {method!r:.80}.")

    def asked() -> Iterator[Any]:
        for key in keys:
            found = run.explanation(*key)
            columns = found.details().get("column")
            own = None if columns is None else [(found.label, column) for column in columns]
            yield found.answers, own

    with few_threads(0):  # more threads may add numbers in another order
        methods = dict(zip(keys, method.pool(asked(), len(names)), strict=True))
    settings = {**run.settings, "pooled": len(names)}
    run_folder.refuse_links(folder)
    with folder.lock():
        if run_folder.part_files(folder):  # of an earlier call
            before = {**run_folder.read_manifest(folder)["settings"], "pooled": len(names)}
            run_folder.refuse_difference(folder, before, settings)
            run_folder.remove_run(folder)
        identity = digest_of(settings)[:16]
        run_folder.write_manifest(folder, identity, settings)
        failures: list[dict[str, Any]] = run.failures().to_dict("records")  # type: ignore[assignment]
        failed = {row["input"]: row for row in failures}
        for part in run_folder.part_files(run.location):
            rows: run_folder.Rows = []
            for number in run_folder.part_numbers(settings, part):
                if number in failed:
                    rows.append(failed[number])
                    continue
                wanted = [(number, target) for target in targets[number]]
                own = [_refit(run, key, methods[key]) for key in wanted]
                for found in own:
                    file = folder / f"explanations/{number}-{found.target}.eblime"
                    file.write(pack(found))
                with few_threads(0):
                    rows += run_folder.rows_of_input(number, names[number], own, settings["prob"])
            run_folder.write_part(folder, identity, part, rows)
    return replace(run, location=folder)


def _refit(run: Run, key: tuple[int, int], method: EBLIME) -> Explanation:
    """An explanation of the run with another prior."""
    found = run.explanation(*key).refit(method)
    assert method.pooled is not None
    words = f"pooled over {method.pooled.inputs} inputs"
    return replace(found, provenance={**found.provenance, "pooled": words})
