# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Common code of the checks: the tree's files, and a simple reader of C.

The reader understands only declarations at file scope in kernel style. It blanks
comments, strings and preprocessor lines without changing line numbers, and then
splits the rest at top-level semicolons and braces.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files(top, *patterns):
    """Paths below top, relative and sorted, whose name ends as one of patterns."""
    git = ["git", "-C", top, "ls-files", "-co", "--exclude-standard"]
    if os.path.exists(os.path.join(top, ".git")):
        out = subprocess.run(git, capture_output=True, text=True, check=True).stdout
        found = [f for f in out.splitlines() if os.path.isfile(os.path.join(top, f))]
    else:
        found = []
        for path, dirs, names in os.walk(top):
            dirs[:] = [d for d in dirs if d not in ("_build", "out", "__pycache__")]
            found += [os.path.relpath(os.path.join(path, n), top) for n in names]
    return sorted(f for f in set(found) if not patterns or f.endswith(patterns))


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8") as f:
        return f.read()


class Report:
    """Collects complaints as path:line: text, the way a compiler prints them."""

    def __init__(self):
        self.lines = []

    def add(self, path, line, text):
        self.lines.append(f"{path}:{line}: {text}" if line else f"{path}: {text}")

    def finish(self):
        for line in self.lines:
            print(line)
        sys.exit(1 if self.lines else 0)


def blank(text):
    """The same number of lines and columns, with nothing but spaces."""
    return re.sub(r"[^\n]", " ", text)


TOKEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)


def strip(text, strings=True):
    """C without comments, and without strings and characters if asked."""

    def sub(m):
        tok = m.group(0)
        if tok[0] in "\"'":
            return tok[0] + blank(tok[1:-1]) + tok[0] if strings else tok
        return blank(tok)

    return TOKEN.sub(sub, text)


DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)


def includes(text):
    """(line, '<' or '"', name) of each include directive."""
    for m in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]',
                         strip(text, strings=False), re.M):
        yield text.count("\n", 0, m.start()) + 1, m.group(1), m.group(2)


@dataclass
class Item:
    """One declaration or definition at file scope."""

    kind: str       # function, prototype, type or other
    name: str
    head: str       # its text up to the body
    body: str       # text between its braces, comments blanked
    line: int       # where it starts
    length: int     # lines from the opening brace to the closing one
    doc: str        # the kernel-doc comment right before it, or ""


NOT_A_FUNCTION = ("if", "while", "for", "switch", "sizeof", "typeof", "defined")


ATTRIBUTE = re.compile(
    r"\b__(?:printf|must_hold|acquires|releases|cond_acquires|aligned|alloc_size)\s*\([^()]*\)"
    r"|\b__attribute__\s*\(\([^()]*(?:\([^()]*\))?[^()]*\)\)")


def function_name(head):
    """The name that a function's head declares; None for anything else."""
    head = ATTRIBUTE.sub(" ", head)
    if re.match(r"\s*(typedef|struct\s+\w+\s*$|enum\s+\w+\s*$)", head):
        return None
    if "=" in head.split("(")[0] or "(" not in head:
        return None
    # A type, at least, comes before the name: a macro call has none.
    m = re.match(r"[\w\s*]*?[\w*]\s*[\s*](\w+)\s*\(", head)
    if not m or m.group(1) in NOT_A_FUNCTION:
        return None
    return m.group(1)


def classify(head, has_body):
    if re.match(r"\s*(?:static\s+)?(?:const\s+)?(?:struct|union|enum)\s+\w+(?:\s+__\w+)*\s*$",
                head) and has_body:
        return "type", re.search(r"(?:struct|union|enum)\s+(\w+)", head).group(1)
    name = function_name(head)
    if name:
        return ("function" if has_body else "prototype"), name
    return "other", ""


def items(text):
    """Every declaration and definition at file scope, in order."""
    code = DIRECTIVE.sub(lambda m: blank(m.group(0)), strip(text))
    code = re.sub(r'extern\s+"C"\s*\{', lambda m: blank(m.group(0)), code)
    found, start, depth, open_at, body, length = [], 0, 0, 0, "", 0
    for m in re.finditer(r"[(){};]", code):
        c, at = m.group(0), m.start()
        if c in "({":
            if c == "{" and depth == 0 and not body:
                open_at = at
            depth += 1
        elif c in ")}":
            depth = max(depth - 1, 0)
            if c == "}" and depth == 0 and not body:
                body = code[open_at + 1:at] or " "
                length = code.count("\n", open_at, at) + 1
        if depth or c not in ";}":
            continue
        head = code[start:open_at] if body else code[start:at]
        kind, name = classify(head, bool(body))
        if c == "}" and kind != "function":
            continue            # a type or an initialiser: its semicolon follows
        begin = start + len(head) - len(head.lstrip())
        found.append(Item(kind, name, head.strip(), body,
                          text.count("\n", 0, begin) + 1, length,
                          doc_before(text, begin)))
        start, body, length = at + 1, "", 0
    return found


def doc_before(text, at):
    before = text[:at].rstrip()
    if not before.endswith("*/"):
        return ""
    comment = before[before.rfind("/*"):]
    return comment if comment.startswith("/**") else ""


def exports(text):
    """(line, macro, symbol, namespace or None) of each exported symbol."""
    for m in re.finditer(r'^[ \t]*((?:\w+_)?EXPORT_SYMBOL\w*|KOFI_EXPORT\w*)\(\s*(\w+)\s*(?:,\s*"?(\w+)"?\s*)?\)',
                         DIRECTIVE.sub(lambda m: blank(m.group(0)),
                                       strip(text, strings=False)), re.M):
        yield text.count("\n", 0, m.start()) + 1, m.group(1), m.group(2), m.group(3)
