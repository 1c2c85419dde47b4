"""When each unit would be run, by the seconds that the table says it takes."""


def schedule(units, gpus, seconds):
    """[(begin, end, GPU, unit)] of those that are over within `seconds`, where each GPU takes the next unit
    as soon as it is free and begins nothing that would not be over."""
    free, found = [0.0] * gpus, []
    for unit in units:
        gpu = min(range(gpus), key=lambda number: free[number])
        # A long one that does not fit leaves room for a short one after it.
        if free[gpu] + unit.takes <= seconds:
            found.append((free[gpu], free[gpu] + unit.takes, gpu, unit))
            free[gpu] += unit.takes
    return found


def lines(units, gpus, seconds):
    found = schedule(units, gpus, seconds)
    lines = [f"{begin:6.0f} to {end:5.0f} s  GPU {gpu}  {unit.name}" for begin, end, gpu, unit in found]
    left = [unit.name for unit in units if unit not in [entry[3] for entry in found]]
    lines.append(
        f"{len(found)} of {len(units)} units in {max((entry[1] for entry in found), default=0):.0f} s of"
        f" {gpus} GPUs" + (f"; the next would be {left[0]}" if left else "")
    )
    return lines
