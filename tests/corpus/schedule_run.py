"""An independent machine that runs a schedule on symbols: each statement must read what it would read in the order of the source."""

from tilelab.schedule import Schedule


def values_of(works, iterations):
    """One iteration after the other: what each statement of each iteration reads, and what lies in the buffers in the end."""
    memory, seen = {}, {}
    for i in range(iterations):
        for k, w in enumerate(works):
            seen[i, k] = tuple(memory.get(b.name, b.name) for b in w.reads)
            for b in w.writes:
                memory[b.name] = hash((i, k, seen[i, k]))
    return seen


def run(schedule: Schedule, works, versions):
    """The schedule's slots in their order, on buffers of so many versions: what each statement reads."""
    memory, seen = {}, {}
    for slot in schedule.slots:
        w, i = works[slot.statement], slot.iteration
        place = {b.name: (b.name, i % versions[b.name] if versions.get(b.name) else 0) for b in (*w.reads, *w.writes)}
        seen[i, slot.statement] = tuple(memory.get(place[b.name], b.name) for b in w.reads)
        for b in w.writes:
            memory[place[b.name]] = hash((i, slot.statement, seen[i, slot.statement]))
    return seen


def agrees(schedule, works, versions=None):
    if versions is None:
        versions = {b.name: b.versions for b in schedule.buffers}
    return run(schedule, works, versions) == values_of(works, schedule.shown)
