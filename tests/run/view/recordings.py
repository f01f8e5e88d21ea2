"""Readers of a run's recordings: waveform, its save file, and timeline."""

import json
import re
from collections import defaultdict
from pathlib import Path

from vcdvcd import VCDVCD

from neuroncore_rtl.run.view.waves import signals

__all__ = ["SaveFile", "Timeline", "Waveform"]


class Waveform:
    """Waveform of a run, with the value of each signal before every rising edge of the clock."""

    def __init__(self, vcd: Path, top: str):
        self.top = top
        self.names = signals(vcd)
        self.recorded = VCDVCD(str(vcd))
        self.edges = [time for time, value in self["clk"].tv if value == "1"]

    def __getitem__(self, name: str):
        shown = re.sub(r"\[(\d+)\]$", r"[\1:\1]", self.names[f"{self.top}.{name}"])
        try:
            return self.recorded[shown]
        except KeyError:  # GTKWave escapes names that this simulator does not
            return self.recorded[shown.replace("\\", "")]

    def high(self, name: str) -> list[bool]:
        changes, value, values = iter([*self[name].tv, (float("inf"), "x")]), "x", []
        time, following = next(changes)
        for edge in self.edges:
            while time < edge:
                value = following
                time, following = next(changes)
            values.append(value == "1")
        return values

    def values(self, name: str) -> list[int]:
        return [int(value, 2) for _, value in self[name].tv if "x" not in value]

    def last(self, name: str) -> int:
        return int(self[name].tv[-1][1], 2)


class SaveFile:
    """GTKWave save file: signals `shown`, names of `groups`, and `words` of each enumeration of hdl/."""

    def __init__(self, path: Path):
        lines = path.read_text().splitlines()
        self.shown = [line.rpartition(" ")[2] for line in lines if line.startswith("+{")]
        marks = [line.removeprefix("-") for line in lines if line.startswith("-")]
        self.groups = marks[::2]
        assert self.groups == marks[1::2], "a group begins and ends with its name"
        files = {Path(line.split()[1]) for line in lines if line.startswith("^")}
        assert {file.parent for file in files} <= {path.parent}
        self.words = {file.name.removesuffix(".words"): file.read_text().split() for file in files}


class Timeline:
    """Timeline: `groups` from top to bottom, `tracks` by group, `slices` and `curves` by group and track."""

    def __init__(self, path: Path):
        events = json.loads(path.read_text())["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        assert all(thread != 0 for _, thread in threads), "thread 0 would be the idle one"
        self.groups = [names[number] for number in sorted(names)]
        self.tracks, self.slices, self.curves = defaultdict(list), defaultdict(list), defaultdict(dict)
        for (process, _), track in threads.items():
            self.tracks[names[process]].append(track)
        for event in events:
            group = names[event["pid"]]
            if event["ph"] == "X":
                self.slices[group, threads[event["pid"], event["tid"]]].append(event)
            elif event["ph"] == "C":
                self.curves[group].setdefault(event["name"], []).append((event["ts"], event["args"]["value"]))
