"""Prometheus' text exposition format 0.0.4, read strictly: what breaks a rule is an error.

Besides the grammar: HELP and TYPE once and before the samples, samples of a family together, no
series twice, counters named `_total`, base units, histograms cumulative and complete.
"""

import math
import re
import urllib.request

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(\{{.*\}})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
FOREIGN_UNITS = ("_ms", "_us", "_ns", "_milliseconds", "_microseconds", "_minutes", "_kb", "_mb",
                 "_kib", "_mib", "_percent", "_pages_bytes")


class Malformed(Exception):
    pass


def _labels(text):
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        if not found or found[1] in labels:
            raise Malformed(f"labels: {text}")
        labels[found[1]] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], found[2])
        at = found.end()
    return labels


class Scrape:
    """families: {name: (type, help)}; samples: {(name, ((label, value), ...)): number}."""

    def __init__(self, text, prefix="selvage_"):
        self.families, self.samples = {}, {}
        helps, current = {}, None
        if not text.endswith("\n"):
            raise Malformed("the last line does not end")
        for line in text.splitlines():
            if re.match(r"(# \w+ )?exposer_", line):
                continue  # The web server's own, from its library.
            if line.startswith("# HELP "):
                name, _, what = line[7:].partition(" ")
                if name in helps or not what.endswith("."):
                    raise Malformed(line)
                helps[name] = what
            elif line.startswith("# TYPE "):
                name, kind = line[7:].split(" ")
                if name in self.families or name not in helps:
                    raise Malformed(line)
                if kind not in ("counter", "gauge", "histogram") or not name.startswith(prefix):
                    raise Malformed(line)
                if (kind == "counter") != name.endswith("_total"):
                    raise Malformed(f"{line}: counters, and they alone, end with _total")
                if any(name.removesuffix("_total").endswith(unit) for unit in FOREIGN_UNITS):
                    raise Malformed(f"{line}: not a base unit")
                current, self.families[name] = name, (kind, helps[name])
            else:
                self._sample(line, current)
        self._histograms()

    def _sample(self, line, current):
        found = SAMPLE.match(line)
        if not found or current is None:
            raise Malformed(line)
        name, labels = found[1], _labels(found[2][1:-1]) if found[2] else {}
        kind = self.families[current][0]
        suffix = name.removeprefix(current)
        if suffix not in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",)):
            raise Malformed(f"{line}: in {current}")
        if (suffix == "_bucket") != ("le" in labels):
            raise Malformed(line)
        value = float(found[3])
        if not math.isfinite(value) or (kind != "gauge" and value < 0):
            raise Malformed(line)
        key = (name, tuple(sorted(labels.items())))
        if key in self.samples:
            raise Malformed(f"{line}: twice")
        self.samples[key] = value

    def _histograms(self):
        for name, (kind, _) in self.families.items():
            if kind != "histogram":
                continue
            series = {}
            for (sample, labels), value in self.samples.items():
                if sample == name + "_bucket":
                    rest = tuple(pair for pair in labels if pair[0] != "le")
                    series.setdefault(rest, []).append((float(dict(labels)["le"]), value))
            for rest, buckets in series.items():
                bounds = [bound for bound, _ in buckets]
                counts = [count for _, count in buckets]
                if bounds != sorted(set(bounds)) or bounds[-1] != math.inf:
                    raise Malformed(f"{name}{rest}: bounds {bounds}")
                if counts != sorted(counts) or counts[-1] != self.samples[(name + "_count", rest)]:
                    raise Malformed(f"{name}{rest}: counts {counts}")
                if (name + "_sum", rest) not in self.samples:
                    raise Malformed(f"{name}{rest}: no sum")

    def get(self, name, **labels):
        return self.samples[("selvage_" + name, tuple(sorted(labels.items())))]

    def label_values(self, label):
        return {dict(labels)[label] for _, labels in self.samples if label in dict(labels)}


def fetch(url):
    """The text and its content type."""
    with urllib.request.urlopen(url, timeout=30) as reply:
        return reply.read().decode(), reply.headers["Content-Type"]
