# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Pictures that are made from the text of a page, as SVG inside the page, so that the theme's
colours and fonts apply to them.

  .. picture:: FILE.svg     a drawing by hand, beside the page
  .. graph::                a graph in dot's language
  .. states:: SOURCE TABLE  the transitions of a table that is in the code
  .. exchange:: LEFT, RIGHT what two sides send to each other

The option :alt: is the description for those who can't see the picture.
"""

import html
import os
import re
import subprocess

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.util import logging

TOP = os.path.abspath("..")

STYLE = """
bgcolor=transparent margin=0 pad=0.05 nodesep=0.2 ranksep=0.35
node [shape=box style=rounded fontname="DejaVu Sans" fontsize=10 margin="0.08,0.04" height=0.3]
edge [fontname="DejaVu Sans" fontsize=9 arrowsize=0.6]
"""


class Picture(Directive):
    """Base of the directives: a subclass has svg()."""

    option_spec = {"alt": directives.unchanged_required}
    has_content = True

    def svg(self):
        raise NotImplementedError

    def depend(self, path):
        """Build the page anew when the file changes; return its contents."""
        self.state.document.settings.env.note_dependency(path)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def run(self):
        alt = self.options.get("alt")
        if not alt:
            raise self.error("a picture needs :alt:")
        svg = self.svg()
        svg = svg[svg.index("<svg"):]
        width, height = re.search(r'viewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"', svg).groups()
        svg = re.sub(r"<svg[^>]*>",
                     f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="'
                     f'{html.escape(alt)}" style="width: {float(width) / 11:.1f}em">', svg, count=1)
        svg = re.sub(r"<!--.*?-->|<title>.*?</title>", "", svg, flags=re.S)
        return [nodes.raw("", f'<div class="picture">{svg}</div>', format="html")]


class Drawing(Picture):
    required_arguments = 1
    has_content = False

    def svg(self):
        page = os.path.dirname(self.state.document.current_source)
        return self.depend(os.path.join(page, self.arguments[0]))


def dot(graph):
    return subprocess.run(["dot", "-Tsvg"], input=graph, text=True, stdout=subprocess.PIPE,
                          check=True).stdout


class Graph(Picture):
    def svg(self):
        return dot(f"digraph {{ {STYLE} {' '.join(self.content)} }}")


def transitions(source, table):
    """{(from, to)} of a table [TO] = BIT(FROM) | ..., without the states' prefix."""
    found = re.search(r"\b%s\[\w*\] = \{(.*?)\n\};" % table, source, re.S)
    if not found:
        return None
    macros = dict(re.findall(r"^#define (\w+)\s+(\(S\(.*\)\))$", source, re.M))
    edges = set()
    for to, values in re.findall(r"\[\w+?_(?:ROP|RPEER|TS)_(\w+)\]\s*= (.*?)(?=,\s*(?:\[|$))",
                                 found[1], re.S):
        for macro, value in macros.items():
            values = re.sub(rf"\b{macro}\b", value, values)
        for start in re.findall(r"(?:BIT|S)\((?:\w+?_(?:ROP|RPEER|TS)_)?(\w+)\)", values):
            edges.add((start, to))
    return edges


class States(Picture):
    """Each line of the content is "FROM -> TO: why", and must be in the table. All transitions between
    the states that :states: lists, in any picture of the table on this page, must be in one of its
    pictures, except those from and to the states of :leave:."""

    required_arguments = 2
    option_spec = {**Picture.option_spec, "states": directives.unchanged_required,
                   "leave": directives.unchanged}

    def svg(self):
        path, table = self.arguments
        edges = transitions(self.depend(os.path.join(TOP, path)), table)
        if edges is None:
            raise self.error(f"{path} has no table {table}")
        shown = set(self.options["states"].split())
        leave = set(self.options.get("leave", "").split())
        why = {}
        for line in self.content:
            edge = re.fullmatch(r"(\w+) -> (\w+): (.+)", line)
            if not edge:
                raise self.error(f'isn\'t "FROM -> TO: why": {line}')
            why[edge[1], edge[2]] = edge[3]
        for a, b in sorted(why.keys() - edges):
            raise self.error(f"{table} in {path} doesn't have {a} -> {b}")
        tables = self.state.document.__dict__.setdefault("tables", {})
        missing, states = tables.setdefault((path, table), (edges, set()))
        missing -= why.keys() | {edge for edge in missing if leave.intersection(edge)}
        states |= shown
        lines = [f'{a} -> {b} [label="{text}"]' for (a, b), text in why.items()]
        return dot(f"digraph {{ {STYLE} {'; '.join(lines)} }}")


def check_tables(_, document):
    """Warn of transitions that no picture has."""
    for (path, table), (missing, states) in getattr(document, "tables", {}).items():
        for a, b in sorted(edge for edge in missing if states.issuperset(edge)):
            logging.getLogger(__name__).warning(
                f"{table} in {path} has {a} -> {b}, which no picture explains")


class Exchange(Picture):
    """Lines: "> text" and "< text" are packets, "~> text" and "<~ text" transfers by the device,
    and "left: text" and "right: text" what a side does."""

    final_argument_whitespace = True
    required_arguments = 1
    WIDTH, LEFT, RIGHT, NOTE = 360, 66, 294, 172

    def line(self, text, y):
        kind, _, label = text.partition(" ")
        esc = html.escape(label)
        if kind in ("left:", "right:"):
            if len(label) > 29:
                raise self.error(f"longer than its box: {text}")
            x = 2 if kind == "left:" else self.WIDTH - self.NOTE - 2
            return y + 28, (f'<g class="node"><rect x="{x}" y="{y}" width="{self.NOTE}" height="22" '
                            f'rx="4"/><text x="{x + self.NOTE / 2}" y="{y + 15}">{esc}</text></g>')
        if kind not in (">", "<", "~>", "<~"):
            raise self.error(f"neither a packet nor a note: {text}")
        if len(label) > 36:
            raise self.error(f"longer than its arrow: {text}")
        start, end = self.LEFT, self.RIGHT
        if "<" in kind:
            start, end = end, start
        tip = 7 if start < end else -7
        dashed = ' class="dashed"' if "~" in kind else ""
        return y + 34, (f'<g class="edge"><text class="over" x="{self.WIDTH / 2}" y="{y + 13}">'
                        f'{esc}</text><path{dashed} d="M{start},{y + 20} H{end}"/><polygon points="'
                        f'{end},{y + 20} {end - tip},{y + 16} {end - tip},{y + 24}"/></g>')

    def svg(self):
        left, right = (name.strip() for name in self.arguments[0].split(","))
        y, parts = 30, []
        for text in self.content:
            y, part = self.line(text, y)
            parts.append(part)
        ends = "".join(f'<g class="edge"><path class="life" d="M{x},24 V{y}"/></g><g class="node">'
                       f'<rect x="{x - 62}" y="2" width="124" height="22" rx="4"/><text x="{x}" '
                       f'y="17" class="head">{html.escape(name)}</text></g>'
                       for x, name in ((self.LEFT, left), (self.RIGHT, right)))
        return f'<svg viewBox="0 0 {self.WIDTH} {y}">{ends}{"".join(parts)}</svg>'


def setup(app):
    for name, directive in (("picture", Drawing), ("graph", Graph), ("states", States),
                            ("exchange", Exchange)):
        app.add_directive(name, directive)
    app.connect("doctree-read", check_tables)
    return {"parallel_read_safe": True}
