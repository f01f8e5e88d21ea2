"""Profile of a product on the smallest core, by RTL and by the timing model."""

import csv
import json
import re
from pathlib import Path

import duckdb
import pytest
from matplotlib import image as pictures

from neuroncore_rtl.golden.timing import predict
from neuroncore_rtl.kernels.program import build_image
from neuroncore_rtl.run.harness.activity import STARTED
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.view.profile.files import write_profile
from neuroncore_rtl.run.view.profile.run import modelled_run, simulated_run
from neuroncore_rtl.run.view.profile.stalls import StallCause
from neuroncore_rtl.run.view.profile.tracks import Names, occupancy
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.isa import MultiplyMoving, Storage
from neuroncore_rtl.tb.tests.kernels.products import product_program
from tests.run.view.profile.hand import TINY
from tests.run.view.recordings import Timeline
from tests.tb.reports import passed, report_of

M, K, N = 8, 8, 12


@pytest.fixture(scope="module")
def product():
    return build_image(product_program(M, K, N, BF16, TINY)[0])


@pytest.fixture(scope="module")
def outcome(product):
    job = ImageJob(machine=TINY, images=[product])
    return run_device(job.device(), job.work(1, profiled=True)).parts[0]


@pytest.fixture(scope="module", params=["rtl", "model"])
def profile(request, product, outcome):
    if request.param == "rtl":
        return simulated_run("product", product, outcome)
    return modelled_run("product", product, predict(product))


@pytest.fixture(scope="module")
def folder(profile, tmp_path_factory):
    directory = tmp_path_factory.mktemp("profile")
    write_profile(directory, profile, TINY.hbm_ports * TINY.hbm_bytes)
    return directory


def test_activity_is_what_the_counters_counted(outcome):
    """Engines' counters count until the end of the program; what queues count after the end is not compared."""
    seen = {name: sum(end - begin for begin, end in spans) for name, spans in outcome.activity.items()}
    counters = outcome.counters
    assert seen["tensor.columns"] == counters["tensor"]["columns"] == (M // 4) * (K // 4) * N
    assert seen["vector.busy"] == counters["vector"]["busy"] > 0
    assert [seen[f"dma.{n}.busy"] for n in (0, 1)] == [dma["busy"] for dma in counters["dma"]]
    for number, queue in enumerate(counters["queues"]):
        for name in ("wait_fetch", "wait_semaphore", "wait_engine", "executing"):
            assert seen[f"queues.{number}.{name}"] == queue[name]
        states = ("idle", "wait_fetch", "wait_semaphore", "wait_engine", "executing")
        assert sum(seen[f"queues.{number}.{name}"] for name in states) == outcome.cycles
    ((begin, end),) = outcome.activity[STARTED]
    assert 0 < begin < min(event.issued for event in outcome.events) and end == outcome.cycles


def test_records_are_fetched_then_issued_then_retired(profile, product):
    assert len(profile.records) == sum(map(len, product.records))
    for ran in profile.records:
        assert 0 <= ran.fetched < ran.issued < ran.retired <= profile.cycles
        assert ran.record == product.locate(ran.address)[1]
        assert all(one.retired < ran.issued for one in profile.awaited(ran))


def test_every_cycle_of_every_engine_has_a_cause(profile, folder):
    summary = json.loads((folder / "summary.json").read_text())["product"]
    assert summary["modelled"] == profile.modelled
    assert summary["neuroncore_cycle_count"] == profile.cycles
    assert set(summary["stalls"]) == {"tensor", "vector", "dma0", "dma1"}
    for name, causes in summary["stalls"].items():
        assert sum(causes.values()) == profile.cycles and set(causes) == {cause.name.lower() for cause in StallCause}
        assert causes["busy"] > 0 < causes["start"], name
    assert summary["stalls"]["tensor"]["busy"] == (M // 4) * (K // 4) * N
    assert summary["stalls"]["tensor"]["data"] > 100  # a load takes longer than LATENCY
    assert summary["stalls"]["vector"]["result"] > summary["stalls"]["vector"]["data"] == 0
    assert summary["hardware_flops"] == summary["model_flops"] == 2 * M * K * N
    assert summary["hbm_read_bytes"] >= 2 * K * (M + N) and summary["hbm_write_bytes"] == 4 * M * N
    assert summary["mfu_estimated_percent"] == pytest.approx(M * K * N / 16 / profile.cycles)
    assert summary["busiest_queue"] in ("dma0", "dma1")


def test_utilisation_has_the_monitors_shape(profile, folder):
    report = json.loads((folder / "utilisation.json").read_text())
    (runtime,) = report["neuron_runtime_data"]
    counters = runtime["report"]["neuroncore_counters"]
    core = counters["neuroncores_in_use"]["0"]
    assert core["neuroncore_utilization"] == pytest.approx(100 * profile.worked(0) / profile.cycles)
    assert core["flops"] == pytest.approx(2 * M * K * N / counters["period"], rel=1e-6)
    assert runtime["report"]["execution_stats"]["execution_summary"]["completed"] == 1
    assert report["neuron_hardware_info"]["neuroncore_version"] == "v2"


def test_the_timeline_has_all_instructions_and_an_arrow_for_each_wait(profile, folder):
    timeline = Timeline(folder / "timeline.json")
    assert timeline.groups == ["controller", "engines", "stalls", "memories on chip"]
    slices = [one for (group, _), some in timeline.slices.items() if group == "engines" for one in some]
    assert len(slices) == len(profile.records)
    assert {"load_stationary 4 x 4", f"multiply_moving 4 x 4 x {N}"} <= {one["name"] for one in slices}
    multiply = next(one["args"] for one in slices if one["name"].startswith("multiply"))
    assert multiply["tensor moving"] == "operands" and multiply["tensor psum"] == "sums"
    assert re.fullmatch(r"matmul\.py:\d+(, from \w+\.py:\d+)?", multiply["source"])
    load = next(one for one in slices if one["name"].startswith("dma hbm to sbuf"))
    assert load["args"]["tensor src"] in "ab" and load["cat"] == "load"

    events = json.loads((folder / "timeline.json").read_text())["traceEvents"]
    tails, heads = ({e["id"]: e for e in events if e["ph"] == phase} for phase in "sf")
    assert tails.keys() == heads.keys() and len(tails) == sum(len(ran.record.waits) for ran in profile.records) > 4
    bars = [e for e in events if e["ph"] == "X"]
    for ends in (tails, heads):
        for end in ends.values():
            at = [b for b in bars if (b["pid"], b["tid"]) == (end["pid"], end["tid"])]
            assert any(b["ts"] <= end["ts"] <= b["ts"] + b["dur"] for b in at)
    stalls = {one["name"] for (group, _), some in timeline.slices.items() if group == "stalls" for one in some}
    assert {"start", "data", "result", "end"} <= stalls
    assert timeline.slices["controller", "controller"][0]["name"] == "boot"


def test_occupancy_and_names_of_tensors(profile):
    config = profile.image.config
    for storage, size in ((Storage.SBUF, config.sbuf_bytes), (Storage.PSUM, config.psum_bytes)):
        curve = occupancy(profile, storage)
        assert curve[-1][1] == profile.image.space.fixed_end(storage)
        assert 0 < max(value for _, value in curve) <= size and min(value for _, value in curve) >= 0
    names = Names(profile.image.space)
    assert {"a", "b", "c", "operands", "sums"} <= {name for ran in profile.records for name in names.of(ran).values()}
    multiply = next(ran for ran in profile.records if isinstance(ran.record.instruction, MultiplyMoving))
    assert names.of(multiply) == {"psum": "sums", "moving": "operands"}


def test_temporaries_of_a_repeated_section_live_once_in_each_execution():
    once, thrice = (build_image(product_program(M, K, N, BF16, TINY)[0], runs=[0] * times) for times in (1, 3))
    single, repeated = (modelled_run("product", image, predict(image)) for image in (once, thrice))
    assert len(repeated.records) == 3 * len(single.records)
    for storage in (Storage.SBUF, Storage.PSUM):
        most = max(value for _, value in occupancy(single, storage))
        curve = occupancy(repeated, storage)
        assert max(value for _, value in curve) == most
        starts = [begin for _, begin, _ in repeated.sections]
        before = [[value for cycle, value in curve if cycle < begin][-1] for begin in starts[1:]]
        assert before == [once.space.fixed_end(storage)] * 2


def test_listing_and_lines_have_the_cycles_and_records_of_the_run(profile, folder):
    headings, *lines = (folder / "listing.txt").read_text().splitlines()
    assert headings.split() == ["queue", "fetched", "issued", "retired", "record"]
    assert len(lines) == len(profile.records)
    issued = [int(line.split()[2].replace(",", "")) for line in lines]
    assert issued == sorted(issued) == [ran.issued for ran in profile.records]
    assert sum("multiply_moving format=bf16" in line for line in lines) == 4
    assert all(re.search(r"  # .*\.py:\d+", line) for line in lines)
    with (folder / "lines.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {Path(row["file"]).name for row in rows} == {"matmul.py", "engines.py"}
    assert {Path(row["user_file"]).name for row in rows} == {"products.py"}
    assert sum(int(row["records"]) for row in rows) == len(profile.records)
    (moving,) = (row for row in rows if "MultiplyMoving(" in row["code"])
    assert int(moving["records"]) == (M // 4) * (K // 4) and (folder / "lines.parquet").is_file()
    assert float(moving["share"]) == int(moving["cycles"]) / profile.cycles
    # Instructions of a line may overlap: their spans are united.
    spans = [set(range(r.issued, r.retired)) for r in profile.records if r.entry.source.kernel.code == moving["code"]]
    assert int(moving["cycles"]) == len(set().union(*spans)) <= sum(map(len, spans))


def test_pictures_are_drawn_and_their_data_are_all_spans_of_all_engines(folder, profile):
    for name in ("timeline.png", "roofline.png"):
        drawn = pictures.imread(folder / name)
        assert min(drawn.shape[:2]) > 200 and len(set(map(tuple, drawn.reshape(-1, drawn.shape[2])[::97].tolist()))) > 5
    data = duckdb.read_parquet(str(folder / "timeline.parquet"))
    assert {name for (name,) in data.project("queue").fetchall()} == {profile.queue_name(one) for one in profile.queues}
    array = data.filter("what = 'multiply'").project("first_cycle, end_cycle").fetchall()
    assert len(array) == sum(isinstance(ran.record.instruction, MultiplyMoving) for ran in profile.records)
    assert all(0 <= begin < end <= profile.cycles for begin, end in array)


def test_a_test_reports_its_profile(tmp_path):
    with recording_in(tmp_path):
        report = passed("matmul", f"PRESET=tiny M={M} K={K} N={N} PROFILE=1")
        modelled = report_of("matmul", f"PRESET=tiny M={M} K={K} N={N} TARGET=model PROFILE=1")
    for one, end in ((report, f"-n{N}-presettiny-profile1"), (modelled, "-targetmodel-presettiny-profile1")):
        table = one.rows["cycles_of_dma0"]
        assert table["sum"]["cycles"] == one.cycles == sum(row["cycles"] for row in table.values()) - one.cycles
        assert one.rows["profile"].endswith(end)
        row = one.rows["cycles_of_lines"][0]
        assert re.fullmatch(r"matmul\.py:\d+", row["line"]) and 0 < row["share"] == row["cycles"] / one.cycles < 1
    assert len(list((tmp_path / "profiles").iterdir())) == 2
    with pytest.raises(UsageError, match="PROFILE must be 0"):
        report_of("matmul", "PRESET=tiny TARGET=engine PROFILE=1")
