#!/usr/bin/env python3
"""Timelines in DIR (t.json, and t.svg and t.html where they are) are well-formed, and the first is of PROGRAM.

usage: check_timeline.py DIR PROGRAM [measured-alone] [script]     script: node parses the page's script
"""
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
events = json.loads((folder / "t.json").read_text())["traceEvents"]
process = next(e for e in events if e["name"] == "process_name")
assert process["args"]["name"].startswith(program + ": measured on "), process
spans = [e for e in events if e["ph"] == "X" and e["pid"] == 1]
simulated = [e for e in events if e["ph"] == "X" and e["pid"] == 2 and e["tid"] > 0]
assert len(simulated) == (0 if "measured-alone" in sys.argv else len(spans)), simulated
assert spans and spans[0]["ts"] == 0, spans
for before, span in zip(spans, spans[1:]):  # one stream: one after the other
    assert before["ts"] + before["dur"] <= span["ts"] + 1e-9, (before, span)
assert all(e["dur"] >= 0 and e["args"]["op"] and e["args"]["bytes"] > 0 for e in spans), spans
assert any(e["args"].get("line", 0) > 0 or program.endswith(".tsl") for e in spans), spans

VOID = {"meta", "input", "br", "hr", "link", "img"}


class Page(html.parser.HTMLParser):
    """Every element is closed in turn, and refers to nothing outside."""

    def __init__(self):
        super().__init__()
        self.open, self.data, self.script, self.ids = [], "", "", set()

    def handle_starttag(self, tag, attributes):
        assert not {"src", "href"} & {name for name, _ in attributes}, (tag, attributes)
        self.ids.add(dict(attributes).get("id"))
        if tag not in VOID:
            self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop()[0] == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1][1].get("id") == "data":
            self.data += data
        elif self.open and self.open[-1][0] == "script":
            self.script += data


if (folder / "t.svg").exists():
    picture = ElementTree.parse(folder / "t.svg").getroot()
    assert picture.tag.endswith("svg") and len(list(picture.iter())) > 10
    page = Page()
    page.feed((folder / "t.html").read_text())
    page.close()
    assert not page.open, page.open
    shown = json.loads(page.data)["timelines"]
    assert [t["kind"] for t in shown] == ["measured", "simulated"] and all(t["spans"] for t in shown), shown
    named = set(re.findall(r"\$\('(\w+)'\)", page.script))
    assert len(named) > 10 and named <= page.ids, named - page.ids
    if "script" in sys.argv:
        subprocess.run(["node", "--check", "-"], input=page.script, text=True, check=True)
