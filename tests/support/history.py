"""What the bytes and the size of a file may be, given the WRITEs and truncates sent to it.

The invariant of the write path: the file equals some serial order of the acknowledged changes in
which a change sent after another's reply comes after it; one without a reply may be there or not.
Checked byte by byte, so that a READ that sees part of a WRITE in flight is right. Thread-safe.
"""

import itertools
import threading

NEVER = float("inf")
END = 1 << 62  # Of every file.


class Change:
    """A WRITE of `data` at `begin`, or a truncate to `begin` (data None: zeros from there on)."""

    def __init__(self, begin, data, sent):
        self.begin, self.data, self.sent = begin, data, sent
        self.end = END if data is None else begin + len(data)
        self.answered = NEVER   # When the reply was there; never: in flight, or its fate unknown.
        self.stable = False     # Promised to survive a crash.
        self.verifier = None    # As the reply to an UNSTABLE WRITE gave it.

    @property
    def truncates(self):
        return self.data is None

    @property
    def size(self):
        """What it makes of the file at least (WRITE) or exactly (truncate)."""
        return self.begin if self.truncates else self.end

    def __str__(self):
        what = f"truncate to {self.begin}" if self.truncates else \
            f"WRITE [{self.begin}, {self.end})"
        return f"{what} sent {self.sent} answered {self.answered}{' stable' * self.stable}"


class History:
    """Starts from a file that holds `base`."""

    def __init__(self, base=b""):
        self.lock = threading.Lock()
        self.clock = itertools.count(1)
        self.base = base
        self.changes = []

    def now(self):
        return next(self.clock)

    def send(self, begin, data):
        """Call it before the request is sent."""
        change = Change(begin, data, self.now())
        with self.lock:
            self.changes.append(change)
        return change

    def answer(self, change, stable, verifier=None):
        """Call it when the reply is there."""
        with self.lock:
            change.verifier = verifier
            change.stable = stable
            change.answered = self.now()

    def committed(self, sent, verifier):
        """A COMMIT of the whole file, sent at `sent`, was answered with `verifier`."""
        with self.lock:
            for change in self.changes:
                if change.answered < sent and change.verifier == verifier:
                    change.stable = True

    def crash(self):
        """What is not stable may be there or not from now on."""
        with self.lock:
            for change in self.changes:
                if not change.stable:
                    change.answered = NEVER

    def settle(self, content):
        """Nothing is in flight and the file was found, and checked, to hold `content`."""
        with self.lock:
            self.base, self.changes = content, []

    def _possible(self, relevant, since):
        """Of the changes to a byte those that may be the last one, for an observer who asked at
        `since`; and whether it may be none of them."""
        # One that was sent after this moment, and answered before the observer asked, hides all
        # that were answered before it was sent.
        hidden = max((c.sent for c in relevant if c.answered < since), default=0)
        return [c for c in relevant if not c.answered < hidden], hidden == 0

    def sizes(self, since, until):
        """The least and the largest size that an observer active in that time may see."""
        with self.lock:
            changes = [c for c in self.changes if c.sent < until]
        truncates = [c for c in changes if c.truncates]
        cut = max((c.sent for c in truncates if c.answered < since), default=0)
        most = [c.size for c in changes if not c.answered < cut]
        if cut == 0:
            most.append(len(self.base))
        least = 0
        sure = [c for c in changes if c.answered < since]
        for change in sure + [None]:
            sent, size = (change.sent, change.size) if change else (0, len(self.base))
            later = min((t.begin for t in truncates if t is not change and not t.answered < sent),
                        default=END)
            least = max(least, min(size, later))
        return least, max(most)

    def check(self, offset, content, since, until):
        """None if `content`, read at `offset` between the two times, may be; else what is wrong."""
        end = offset + len(content)
        with self.lock:
            changes = [c for c in self.changes
                       if c.sent < until and c.begin < end and offset < c.end]
        edges = {offset, end}
        for change in changes:
            edges.update(e for e in (change.begin, change.end) if offset < e < end)
        if offset < len(self.base) < end:
            edges.add(len(self.base))
        edges = sorted(edges)
        for low, high in zip(edges, edges[1:]):
            found = content[low - offset:high - offset]
            relevant = [c for c in changes if c.begin <= low and high <= c.end]
            possible, untouched = self._possible(relevant, since)
            # Zero bytes for truncates, and where nothing ever was.
            choices = [bytes(high - low) if c.truncates else c.data[low - c.begin:high - c.begin]
                       for c in possible]
            if untouched:
                choices.append(self.base[low:high] if low < len(self.base) else bytes(high - low))
            if found in choices:
                continue
            for at, byte in enumerate(found):
                if all(choice[at] != byte for choice in choices):
                    nearby = "".join(f"\n    {c}{' *' if c in possible else ''}" for c in relevant)
                    return (f"byte {low + at} is {byte}, read from {since} to {until}; possible "
                            f"{sorted({choice[at] for choice in choices})}{nearby}")
        return None

    def check_size(self, size, since, until):
        least, most = self.sizes(since, until)
        if least <= size <= most:
            return None
        return f"size {size}, read from {since} to {until}, is not in [{least}, {most}]" + \
            "".join(f"\n    {c}" for c in self.changes)
