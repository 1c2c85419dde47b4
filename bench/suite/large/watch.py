"""Runs a command and keeps the most host memory that its processes held.

    watch.py RESULT.json SITE -- COMMAND...

A process counts where its program is below SITE or where it descends from the command. Bytes are Pss_Anon +
Pss_Shmem: shared pages in parts, files' pages apart; tensors that a replay holds on the host are among them.
RESULT: for each program its largest process and the largest sum, and processor seconds of the command with
all that it waited for.
"""
import collections
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading


def processes(site, root):
    parents, names = {}, {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            fields = pathlib.Path(entry.path, "stat").read_text().rsplit(")", 1)[1].split()
            parents[int(entry.name)] = int(fields[1])
            words = pathlib.Path(entry.path, "cmdline").read_text().split("\0")
            names[int(entry.name)] = (words[0], " ".join(words[:4]))
        except OSError:
            continue
    for pid, (program, line) in names.items():
        up = pid
        while up in parents and up != root:
            up = parents[up]
        if up == root or site in line:
            yield pid, os.path.basename(program) or "?"


def held(pid):
    numbers = {}
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == "kB":
            numbers[words[0].rstrip(":")] = int(words[1]) * 1024
    return numbers.get("Pss_Anon", 0) + numbers.get("Pss_Shmem", 0)


def main():
    result, site = sys.argv[1], sys.argv[2]
    command = subprocess.Popen(sys.argv[sys.argv.index("--") + 1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, frame: command.send_signal(n))
    largest, sums, all_at_once = collections.Counter(), collections.Counter(), 0
    done = threading.Event()
    threading.Thread(target=lambda: (command.wait(), done.set()), daemon=True).start()
    while not done.wait(2):
        now = collections.Counter()
        for pid, name in processes(site, command.pid):
            try:
                bytes = held(pid)
            except OSError:
                continue
            now[name] += bytes
            largest[name] = max(largest[name], bytes)
        for name, bytes in now.items():
            sums[name] = max(sums[name], bytes)
        all_at_once = max(all_at_once, sum(now.values()))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    pathlib.Path(result).write_text(json.dumps({"largest_process": largest, "largest_sum": sums,
                                                "all_at_once": all_at_once,
                                                "processor_seconds": used.ru_utime + used.ru_stime},
                                               indent=1))
    sys.exit(command.returncode if command.returncode >= 0 else 128 - command.returncode)


if __name__ == "__main__":
    main()
