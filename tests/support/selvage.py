"""What the scripts below tests/ share: a server, an emulated 4Kn device, the load meter."""

import concurrent.futures
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SELVAGE_BUILD", os.path.join(TOP, "build", "release"))
METER = os.path.join(TOP, "build", "release", "tests", "bench", "nfs-records")

libc = ctypes.CDLL(None, use_errno=True)
# What timeout(1) sends: leave through the context managers, so that no device or server stays.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Server:
    """One selvaged on a free port of 127.0.0.1. `exports` are the values of --export; `listening` a
    socket to hand over, as systemd would."""

    def __init__(self, *exports, state=None, log=None, args=(), port=0,
                 listen="127.0.0.1", listening=None):
        self.own_state = None if state else tempfile.mkdtemp(prefix="selvage-state.")
        self.state = state or self.own_state
        command = [os.path.join(BUILD, "server", "selvaged"), "--listen", listen,
                   "--port", str(port), "--state-dir", self.state]
        for export in exports:
            command += ["--export", export]
        self.listen = listen
        self.log = log or os.path.join(self.state, "log")
        with open(self.log, "ab") as out:
            self.log_start = out.tell()  # A server before this one may have written to it.
            command += args
            if not listening:
                self.process = subprocess.Popen(command, stdout=out, stderr=out)
            else:
                # What is handed over starts at descriptor 3.
                self.process = subprocess.Popen(
                    ["bash", "-c", 'exec 3<&$0; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"',
                     str(listening.fileno()), *command], stdout=out, stderr=out,
                    pass_fds=(listening.fileno(),))
        self.port = self._port()

    def _port(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = re.findall(re.escape(self.listen) + r"\]?:(\d+)", self.output())
            if found and "ready" in self.output():
                return int(found[-1])
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError("selvaged did not start:\n" + self.output())

    def output(self):
        with open(self.log, "rb") as f:
            f.seek(self.log_start)
            return f.read().decode(errors="replace")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """SIGTERM; returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        return self.process.returncode

    def cpu_seconds(self):
        """Of all its threads, io_uring's own workers included."""
        total = 0
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
        return total / 1e9

    def counters(self):
        """The table that SIGUSR1 prints."""
        before = len(self.output())
        self.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 5
        text = ""
        while time.monotonic() < deadline:
            time.sleep(0.04)
            fresh = self.output()[before:]
            if fresh and fresh == text:
                break
            text = fresh
        return text

    def numbers(self):
        """That table's first numbers by name; of the first export, where there are several."""
        found = re.findall(r"^ +(\S+) +(\d+)", self.counters(), re.M)
        return {name: int(value) for name, value in reversed(found)}

    def counter(self, name):
        return self.numbers().get(name, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            if self.own_state:
                shutil.rmtree(self.own_state, ignore_errors=True)


class Rig:
    """A file system on an emulated 4Kn device, removed on exit."""

    def __init__(self, name, fs="xfs", size="4G", backing="shm"):
        self.name, self.fs = f"{name}-{os.getpid()}", fs
        out = self._4kn("up", self.name, "--fs", fs, "--size", size, "--backing", backing)
        _, self.device, self.path = out.splitlines()[-1].split()

    @staticmethod
    def _4kn(*args):
        done = subprocess.run([os.path.join(TOP, "tests", "rig", "4kn"), *args],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"4kn {' '.join(args)}: {done.stderr}")
        return done.stdout

    def mark(self):
        os.sync()
        self._4kn("stat", self.name, "--mark")

    def delta(self, sync=True):
        """read_blocks, write_blocks, read_ios, write_ios, flush_ios since mark()."""
        if sync:
            subprocess.run(["sync", "-f", self.path], check=True)
        text = self._4kn("stat", self.name, "--delta")
        return {k: int(v) for k, v in (item.split("=") for item in text.split())}

    def shut_down(self):
        """XFS_IOC_GOINGDOWN without a log flush: what is not durable now is lost."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, 0x8004587D, struct.pack("I", 2))
        finally:
            os.close(fd)

    def remount(self):
        for _ in range(50):
            if subprocess.run(["umount", self.path], stderr=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(0.1)
        subprocess.run(["mount", "-t", self.fs, self.device, self.path], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(20):
            try:
                return self._4kn("down", self.name) and None
            except RuntimeError as e:
                error = e
                time.sleep(0.25)
        raise error


def meter(server, export, *options, check=True):
    """Runs the load meter; its JSON. With check, anything that it found wrong is an error."""
    command = [METER, "--host", server.listen, "--port", str(server.port), "--mountport",
               str(server.port), "--export", export, *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
                           f"\n{server.output()[-4000:]}")
    return json.loads(done.stdout) if done.stdout else {}


def meters(server, export, loads):
    """Several load meters at once, each with its own options; their results."""
    with concurrent.futures.ThreadPoolExecutor(len(loads)) as pool:
        runs = [pool.submit(meter, server, export, *load) for load in loads]
        return [run.result() for run in runs]


def resident_pages(path):
    """Pages of the file in the page cache: cachestat(2)."""
    fd = os.open(path, os.O_RDONLY)
    try:
        span = (ctypes.c_uint64 * 2)(0, 0)
        stat = (ctypes.c_uint64 * 5)()
        if libc.syscall(451, fd, span, stat, 0):
            raise OSError(ctypes.get_errno(), "cachestat")
        return stat[0]
    finally:
        os.close(fd)


def caches_dropped():
    """How often drop_caches has been written to, by anybody."""
    with open("/proc/vmstat") as f:
        return int(re.search(r"^drop_pagecache (\d+)$", f.read(), re.M).group(1))


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("1\n")


class Checks:
    """Counts checks; says each failed one at once."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, good, text):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {text}", flush=True)
        return good

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed or not self.passed else 0)


def private_namespaces(*kinds):
    """Starts the script again in namespaces of its own (--net, --mount), once."""
    if os.environ.get("SELVAGE_UNSHARED") != "1":
        os.environ["SELVAGE_UNSHARED"] = "1"
        os.execvp("unshare", ["unshare", *kinds, sys.executable, *sys.argv])
    if "--net" in kinds:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
