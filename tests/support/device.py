"""I/O counters of the block device below a directory, where it can be found."""

import os
import subprocess

FIELDS = {"read_ios": 0, "read_blocks": 2, "write_ios": 4, "write_blocks": 6, "flush_ios": 15}


class Device:
    def __init__(self, path):
        number = os.stat(path).st_dev
        self.stat = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat"
        self.path = path
        if not os.path.exists(self.stat):
            self.stat = self._by_mount(path)

    @staticmethod
    def _by_mount(path):
        """btrfs: its st_dev is no device; its first device is."""
        found = subprocess.run(["findmnt", "-n", "-o", "SOURCE", "-T", path], capture_output=True,
                               text=True).stdout.split("[")[0].strip()
        if not found.startswith("/dev/"):
            return None
        number = os.stat(found).st_rdev
        stat = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat"
        return stat if os.path.exists(stat) else None

    def counters(self):
        """Blocks are 4096 bytes; empty where there is no device to ask."""
        if not self.stat:
            return {}
        with open(self.stat) as f:
            raw = [int(v) for v in f.read().split()]
        return {name: raw[at] // (8 if name.endswith("blocks") else 1) if at < len(raw) else 0
                for name, at in FIELDS.items()}

    def sync(self):
        subprocess.run(["sync", "-f", self.path], check=True)


def difference(before, after):
    return {name: after[name] - before[name] for name in after}
