"""Processes below one of ours, for tests that kill them."""

import os
import pathlib


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


def seconds_of(pid):
    """What a process has computed; 0 where it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
