"""Processes below one of ours, for tests that kill them."""

import os
import pathlib
import time


def descendants(root):
    """{pid: words of its command line} of everything below a process."""
    parents = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = pathlib.Path(f"/proc/{entry.name}/stat").read_text().rsplit(")", 1)[1].split()
                parents[int(entry.name)] = int(fields[1])
            except OSError:
                pass
    found = {}
    for pid in parents:
        at = pid
        while at in parents and at != root:
            at = parents[at]
        if at == root and pid != root:
            try:
                found[pid] = (
                    pathlib.Path(f"/proc/{pid}/cmdline")
                    .read_bytes()
                    .replace(b"\0", b" ")
                    .decode(errors="replace")
                )
            except OSError:
                pass
    return found


# For a module's text: its process is called NAME (at most 15 letters) from here on.
NAMED = "__import__('ctypes').CDLL(None).prctl(15, b'{name}')  # PR_SET_NAME\n"


def named(name):
    """Processes that are called so, wherever they are: a warm worker is no descendant of the test."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if pathlib.Path(f"/proc/{entry.name}/comm").read_text().strip() == name:
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def wait_for_named(name, process, seconds=600):
    """Until such a process is there; an error where `process` ends before."""
    deadline = time.monotonic() + seconds
    while not named(name):
        assert process.poll() is None, f"it ended with {process.returncode} before {name} was there"
        assert time.monotonic() < deadline, f"no process {name} within {seconds} s"
        time.sleep(0.05)


def seconds_of(pid):
    """What a process has computed; 0 where it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


QUIET_SECONDS = 0.05  # that the work of slowness() takes where nothing else runs


def slowness():
    """How many times as long as on a quiet machine a little work takes now, at least 1: slower processors and
    other processes both count."""
    began = time.monotonic()
    sum(number * number for number in range(700_000))
    return max(1.0, (time.monotonic() - began) / QUIET_SECONDS)


def soon_enough(seconds, most, load=1.0):
    """Whether what took `seconds` took at most `most` on a quiet machine with `load` processes a core. What
    is too late there is measured against this machine as it is."""
    return seconds < most or seconds < most * slowness() / load


def generations(root, words):
    """The descendants whose command line holds `words`, eldest generation first: launcher, zygote, child."""
    found = {pid: line for pid, line in descendants(root).items() if words in line}
    depth = {}
    for pid in found:
        depth.setdefault(len(set(found) & set(ancestors(pid))), []).append(pid)
    return [depth[level] for level in sorted(depth)]


def ancestors(pid):
    found = []
    while pid > 1:
        try:
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            break
        found.append(pid)
    return found
