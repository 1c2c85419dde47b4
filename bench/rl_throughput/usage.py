"""What `nvidia-smi` says of the GPUs while something runs."""

import shutil
import statistics
import subprocess
import threading
import time


class Usage:
    """Readings of all GPUs, about four a second, with the time of each; none where there is no nvidia-smi."""

    FIELDS = "index,utilization.gpu,memory.used,power.draw"

    def __init__(self):
        self.readings = []  # (time, gpu, utilization, GB, watts)
        self.process = None
        if shutil.which("nvidia-smi"):
            words = [
                "nvidia-smi",
                f"--query-gpu={self.FIELDS}",
                "--format=csv,noheader,nounits",
                "-lms",
                "250",
            ]
            self.process = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            try:
                gpu, share, used, watts = (float(word) for word in line.split(","))
            except ValueError:  # "[N/A]"
                continue
            self.readings.append((time.time(), int(gpu), share / 100, used * 1024**2 / 1e9, watts))

    def between(self, begin, end, gpus):
        """Of each of the first `gpus` GPUs: mean utilisation, most memory, mean power."""
        found = []
        for gpu in range(gpus):
            own = [r for r in self.readings if r[1] == gpu and begin <= r[0] <= end]
            if own:
                found.append(
                    {
                        "gpu": gpu,
                        "utilization": round(statistics.fmean(r[2] for r in own), 3),
                        "memory_gb": round(max(r[3] for r in own), 1),
                        "watts": round(statistics.fmean(r[4] for r in own)),
                        "readings": len(own),
                    }
                )
        return found

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()


def host_gigabytes():
    """Memory of this host that is free, or may become so: the smaller of the kernel's and the container's."""
    free = next(
        int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("MemAvailable:")
    )
    try:
        limit = open("/sys/fs/cgroup/memory.max").read().strip()
        used = int(open("/sys/fs/cgroup/memory.current").read())
        if limit != "max":
            free = min(free, int(limit) - used)
    except (OSError, ValueError):
        pass
    return free / 1e9


def device():
    """Name and memory (GB) of each GPU."""
    if not shutil.which("nvidia-smi"):
        return []
    words = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    lines = subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
    found = [line.rsplit(",", 1) for line in lines if "," in line]
    return [{"name": name.strip(), "memory_gb": float(memory) * 1024**2 / 1e9} for name, memory in found]
