"""TensorBoard's own reader on the event files of a run that was resumed: later steps of the first file no
longer count."""

import math
import os
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

with tempfile.TemporaryDirectory() as folder:
    subprocess.run(
        [sys.argv[1], "--gtest_filter=Metrics.GoIntoOneEventFileARun"],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "NEREID_TEST_OUTPUT": folder},
    )
    # One accumulator goes through all files of a folder in the order of their names.
    events = EventAccumulator(folder, size_guidance={"scalars": 0}, purge_orphaned_data=True)
    events.Reload()
    loss = [(e.step, e.value) for e in events.Scalars("loss")]
    expected = [(s, 10.0 + s) for s in range(3)] + [(s, 40.0 + s) for s in range(3, 8)]
    assert loss == expected, f"expected {expected}, got {loss}"
    assert all(math.isnan(e.value) for e in events.Scalars("bad"))
    assert events.file_version == 2.0, events.file_version
    assert sorted(events.Tags()["scalars"]) == ["bad", "loss"], events.Tags()
print("TensorBoard reads what was written")
