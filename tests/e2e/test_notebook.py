"""The notebook of the documentation finds what its samples were made with.

`make pictures` sets PROMLAKE_PICTURES to a folder, which gets the figures.
"""

import json
import os
import re
import runpy
import urllib.parse
import urllib.request
from pathlib import Path
from time import time
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from support.commands import Commands
from support.programs import ROOT, Programs
from support.server import FRESH, Start
from support.stores import directory_store

NOTEBOOKS = ROOT / "docs/notebooks"
LARGEST = 40_000  # bytes of a picture
FRAMES = ("costs", "slo", "deployments", "anomalies")
PRINT = f"""import json
print(json.dumps({{name: json.loads(globals()[name].to_json(orient="records", date_unit="s")) for name in {FRAMES}}}))
"""
Frames = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def history() -> dict[str, Any]:
    return runpy.run_path(str(NOTEBOOKS / "history.py"))


@pytest.fixture(scope="module")
def frames(programs: Programs, start_for_module: Start, history: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """The results of the notebook over a store, and what the API says about its cardinality."""
    directory = tmp_path_factory.mktemp("notebook")
    store = directory_store(directory / "store")
    server = start_for_module(store, "--no-compactor.enabled")
    history["main"](server.url)
    server.stop()
    Commands(programs, store).compact(time() + 3600)
    notebook = nbformat.read(NOTEBOOKS / "metrics.ipynb", as_version=4)
    code = PRINT
    if pictures := os.environ.get("PROMLAKE_PICTURES"):
        for name in FRAMES:
            path = str(Path(pictures).absolute() / f"notebook-{name}.webp")
            code += f"{name}_figure.savefig({path!r}, dpi=100, pil_kwargs={{'quality': 80}})\n"
    notebook.cells.append(nbformat.v4.new_code_cell(code))
    env = {**os.environ, **FRESH, "LAKE": store.url, "PYTHONPATH": str(ROOT / "client")}
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
        env[name] = str(directory / name)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute(env=env)
    (printed,) = (o.text for o in notebook.cells[-1].outputs if o.output_type == "stream" and o.name == "stdout")
    server = start_for_module(store, "--no-compactor.enabled")
    range_ = {"start": history["BEGIN"].isoformat(), "end": history["END"].isoformat()}
    asked = urllib.parse.urlencode([*range_.items(), *(("label_names[]", name) for name in ("customer", "code")), ("limit", "500")])
    with urllib.request.urlopen(f"{server.url}/api/v1/cardinality/label_values?{asked}", timeout=300) as answer:
        labels = json.load(answer)["labels"]
    server.stop()
    return {**json.loads(printed), "cardinality": labels}


def test_costs(frames: Frames, history: dict[str, Any]) -> None:
    """Counts are exact; dollars are close to those of the cardinality API, which knows the bytes per sample of each block."""
    costs = {row["label"]: row for row in frames["costs"]}
    assert list(costs) == ["service", "customer", "instance", "code", "worker"]
    written = [(labels, len(samples)) for labels, samples in history["series"]()]
    for label, row in costs.items():
        has = [(labels[label], n) for labels, n in written if label in labels]
        assert (row["values"], row["series"], row["samples"]) == (len({value for value, _ in has}), len(has), sum(n for _, n in has))
        assert row["share"] == pytest.approx(row["samples"] / sum(n for _, n in written))
    for label in frames["cardinality"]:
        row = costs[label["label_name"]]
        assert row["series"] == label["series_count"]
        assert row["dollars_per_month"] == pytest.approx(sum(value["dollars_per_month"] for value in label["cardinality"]), rel=0.2)


def test_slo(frames: Frames, history: dict[str, Any]) -> None:
    """Requests and errors of each day are those that were made, across the restarts of the counters."""
    want: dict[tuple[str, float], list[int]] = {}
    for i in history["intervals"]():
        day = (i.end.timestamp() - 1) // 86400 * 86400
        sums = want.setdefault((i.service, day), [0, 0])
        sums[0] += i.requests
        sums[1] += i.errors
    assert {(r["service"], r["day"]): [r["requests"], r["errors"]] for r in frames["slo"]} == want
    for service in history["SERVICES"]:
        days = [sums for (s, _), sums in want.items() if s == service]
        left = 1 - sum(errors for _, errors in days) / (0.001 * sum(requests for requests, _ in days))
        assert [r for r in frames["slo"] if r["service"] == service][-1]["budget_left"] == pytest.approx(left)
        assert (left < 0) == (service == history["OUTAGE"][0])


def test_deployments(frames: Frames, history: dict[str, Any]) -> None:
    rows = frames["deployments"]
    assert [(r["service"], r["version"], r["deployed_at"]) for r in rows] == [(*d[:2], d.at.timestamp()) for d in history["deployments"]()]
    changes = {r["version"]: r["change"] for r in rows}
    assert {v for v, change in changes.items() if abs(change) > 0.05} == {"v43", "v44"}
    assert changes["v43"] == pytest.approx(0.4, abs=0.03)
    assert changes["v44"] == pytest.approx(1 / 1.4 - 1, abs=0.03)


def test_anomalies(frames: Frames, history: dict[str, Any]) -> None:
    worker, begin, end, length = history["STUCK"]
    first, last = int(begin.timestamp()), int(end.timestamp())
    assert [(r["worker"], r["ts"], r["length"]) for r in frames["anomalies"]] == [
        (worker, t, length) for t in range(first + 3600, last + 1, 3600)
    ]


def test_the_page_shows_the_notebook() -> None:
    """The statements of the page are the notebook's, which has no outputs; its pictures are small."""
    notebook = nbformat.read(NOTEBOOKS / "metrics.ipynb", as_version=4)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    page = (ROOT / "docs/notebook.md").read_text()
    statements = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(statements) == len(FRAMES)
    for statement in statements:
        assert any(statement in cell.source for cell in notebook.cells), statement
    pictures = re.findall(r"\]\((images/notebook-\w+\.webp)\)", page)
    assert len(pictures) == len(FRAMES)
    assert all((ROOT / "docs" / picture).stat().st_size <= LARGEST for picture in pictures)
