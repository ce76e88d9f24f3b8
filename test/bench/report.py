"""The report on disk, row by row while a run goes on, and as tables."""
import json

from measure import number
from rows import ROWS

HEAD = "| row | what | Tressel | spread | peers | ratio | aim | machine |\n|---|---|---|---|---|---|---|---|\n"
MARKER = "<!-- table: written by ./dev bench --markdown docs/performance.md -->\n"


def write_aside(path, text):
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text)
    temporary.rename(path)


class State:
    """Rows that a run has measured, each in a file of its own, until the run ends. `key`: of runs whose rows may stand in one report."""

    def __init__(self, out, key, again):
        self.out, self.folder = out, out / "rows"
        self.folder.mkdir(exist_ok=True)
        mark = self.folder / "run"
        if again or not mark.exists() or mark.read_text() != key:
            for path in self.folder.glob("*.json"):
                path.unlink()
        mark.write_text(key)
        self.found = {path.stem: json.loads(path.read_text()) for path in self.folder.glob("*.json")}

    def has(self, ids):
        return all(full in self.found for full in ids)

    def keep(self, rows):
        for row in rows:
            self.found[row["id"]] = row
            write_aside(self.folder / (row["id"] + ".json"), json.dumps(row))

    def rows(self, merge):
        """What was measured; with `merge`, also the rows of the report before that were not."""
        path = self.out / "report.json"
        before = {r["id"]: r for r in json.loads(path.read_text())} if merge and path.exists() else {}
        return list({**before, **self.found}.values())

    def finish(self, merge):
        """Writes report.json, which keeps the rows of the one before that were not measured if `merge`; the next run begins anew."""
        report = self.rows(merge)
        write_aside(self.out / "report.json", json.dumps(report, indent=1) + "\n")
        for old in self.folder.glob("*"):
            old.unlink()
        return report


AIM_WORDS = {True: "met", False: "missed", None: "not judged: a peer failed"}


def aim_text(r):
    return "" if r["aim"] is None else f"{number(r['aim'])} ({AIM_WORDS[r['aim_met']]})"


def table_line(r):
    """A row of the table of docs/performance.md."""
    if "failed" in r or "skipped" in r:
        word = "failed" if "failed" in r else "skipped"
        return f"| `{r['id']}` | {word}: {r[word]} | | | | | | {r['machine']} |"
    peers = ", ".join(f"{n} {number(p['median'])}" if "median" in p else f"{n} failed" for n, p in r["peers"].items())
    return (f"| `{r['id']}` | {r['note']} | {number(r['tressel'])} {r['unit']} | "
            f"{number(r['spread'][0])} to {number(r['spread'][1])} | {peers} | {number(r['ratio'])} | {aim_text(r)} | {r['machine']} |")


def write_markdown(path, report):
    """Replaces what stands after the marker, but for rows that were not measured now, or on another machine; the prose before it is kept."""
    head, _, table = (path.read_text() if path.exists() else "# Performance\n\n" + MARKER).partition(MARKER)
    lines = {(line.split("`")[1], line.rstrip(" |").rpartition("| ")[2]): line for line in table.splitlines() if line.startswith("| `")}
    lines |= {(r["id"], r["machine"]): table_line(r) for r in report if "skipped" not in r}
    order = {full: i for i, full in enumerate(full for row in ROWS for full, _, _ in row.figures_of(False))}
    known = {key: line for key, line in lines.items() if key[0] in order or key[0].startswith("infer.") or key[0] in ("train.geomean", "train.worst")}
    ordered = [known[key] for key in sorted(known, key=lambda key: (order.get(key[0], len(order)), key))]
    path.write_text(head + MARKER + "\n" + HEAD + "\n".join(ordered) + "\n")


def print_table(report):
    print(f"{'row':34} {'unit':24} {'tressel':>10} {'spread':>21} {'best peer':>22} {'ratio':>7} {'aim':>12}")
    for r in report:
        if "failed" in r or "skipped" in r:
            word = "failed" if "failed" in r else "skipped"
            print(f"{r['id']:34} {word.upper() if word == 'failed' else word}: {r[word]}")
            continue
        alive = {n: p["median"] for n, p in r["peers"].items() if "median" in p}
        pick = (min if r["better"] == "lower" else max)(alive, key=alive.get) if alive else None
        peer = f"{pick} {number(alive[pick])}" if pick else "-"
        spread = f"{number(r['spread'][0])}..{number(r['spread'][1])}"
        print(f"{r['id']:34} {r['unit']:24} {number(r['tressel']):>10} {spread:>21} {peer:>22} {number(r['ratio']):>7} {aim_text(r) or '-':>12}")
