"""Measures `haft run` beside pi and codex, with a scripted model on loopback.

Each agent has folders of its own and a key that is none. They work in turn. What is
measured is what they add: from an answer of the model to the next request.
"""
import re
import subprocess
from statistics import median

from .model import Model, bare
from .peers import HERE, Codex, Haft, Pi

SKIPPED = 20


def install():
    if not (HERE / "node_modules").exists():
        subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=HERE, check=True)


def measure(table, folder, binary, many, runs, quick):
    """`table` has `row` and `fact`; `many` is the program with many sessions."""
    install()
    haft, pi, codex = Haft(folder, binary), Pi(folder), Codex(folder)
    print(f"| | | pi {pi.version()}, codex {codex.version()} | | |", flush=True)
    starting(table, haft, pi, codex, runs)
    turns(table, haft, pi, codex, max(2, runs // 5), 60 if quick else 200)
    growing(table, haft, max(2, runs // 5), 200 if quick else 1000)
    remembering(table, haft, pi, codex, 300)
    together(table, folder, many)


def in_turn(count, *works):
    """Each once to warm up, then all of them in turn."""
    for work in works:
        work()
    return list(zip(*[[work() for work in works] for _ in range(count)]))


def starting(table, haft, pi, codex, runs):
    nothing = lambda number, tools: None
    fresh = []
    for _ in range(runs):
        haft.forget()
        fresh.append(haft.run(0, nothing).start)
    ours, pis, codexes = in_turn(runs, *(lambda agent=agent: agent.run(0, nothing) for agent in (haft, pi, codex)))
    starts = lambda all_of: [run.start for run in all_of]
    table.row("agent: start to first request, beside codex", starts(ours), starts(codexes), "≤ 40 ms, ≤ 0.125 ×")
    table.row("agent: the same, beside pi", starts(ours), starts(pis), "–")
    table.fact("agent: the same, with nothing there yet", f"{median(fresh) * 1000:.1f} ms", "≤ 40 ms")
    sizes = [len(all_of[0].seen.first) for all_of in (ours, pis, codexes)]
    table.fact("agent: first request", f"{sizes[0]} bytes (pi {sizes[1]}, codex {sizes[2]})", "≤ 4096 bytes")


def turns(table, haft, pi, codex, runs, count):
    typical = lambda agent, call: median(agent.run(count, call).seen.overheads()[SKIPPED:])
    ours, theirs = in_turn(runs, lambda: typical(haft, haft.read), lambda: typical(pi, pi.read))
    table.row("agent: a turn that reads 4 KB, beside pi", ours, theirs, "≤ 1 ms, ≤ 0.2 ×", digits=2)
    ours, pis, codexes = in_turn(runs, lambda: typical(haft, haft.shell), lambda: typical(pi, pi.shell), lambda: typical(codex, codex.shell))
    table.row("agent: a turn that runs `true` in the sandbox, beside pi, which has none", ours, pis, "≤ 5 ms", digits=2)
    table.row("agent: the same, beside codex", ours, codexes, "–", digits=2)


def growing(table, haft, runs, count):
    """Turns early and late, beside a loop that does nothing but send as many bytes."""
    found = []
    for _ in range(runs):
        ours = haft.run(count, haft.read).seen
        with Model(count, haft.read) as model:
            bare(model.url, ours.sizes)
            theirs = model.seen()["bare"]
        both = [(median(one.overheads()[20:40]), median(one.overheads()[-20:])) for one in (ours, theirs)]
        found.append([time for pair in both for time in pair])
    early, late, bare_early, bare_late = (median(times) for times in zip(*found))
    grown = median((late - (bare_late - bare_early)) / early for early, late, bare_early, bare_late in found)
    shown = lambda early, late: f"{early * 1000:.2f} → {late * 1000:.2f} ms"
    table.fact(f"agent: turns 21–40 and the last 20 of {count} ({ours.sizes[-1] / 1e6:.1f} MB sent in the last); a bare loop: {shown(bare_early, bare_late)}", f"{shown(early, late)}, {grown:.2f} × less the bare loop's", "≤ 1.2 ×")


def remembering(table, haft, pi, codex, count):
    ours = haft.run(count, haft.read, watch=True).peak
    pis = pi.run(count, pi.read, watch=True).peak
    codexes = codex.run(count, codex.shell, watch=True).peak
    table.fact(f"agent: peak memory after {count} turns", f"{ours:.1f} MiB (pi {pis:.0f}, codex {codexes:.0f} with commands)", "≤ 30 MiB")


def together(table, folder, many, count=100, length=10):
    """Sessions at once in one process, each with a record, tools and turns of its own."""
    with Model(length, Haft.read) as model:
        done = subprocess.run([many, model.url, str(count)], cwd=folder, capture_output=True, text=True, check=True)
        seen = model.seen()
    if len(seen) != count or any(len(one.came) != length + 1 for one in seen.values()):
        raise RuntimeError(f"not all of {count} sessions came to their end: {done.stdout}")
    peak = int(re.search(r"(\d+) KiB", done.stdout)[1]) / 1024
    table.fact(f"agent: {count} sessions at once in one process, {length + 1} turns each: peak memory", f"{peak:.1f} MiB", "≤ 200 MiB")
