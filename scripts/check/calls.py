#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A data call is one indirect call and nothing else.

  calls.py source DIR    writes DIR/datacalls.c, a function for each data call
  calls.py judge OBJECT  judges that file's object

A data call is a static inline of include/kofi that calls through an ops vector,
or another data call. Its kernel-doc says so too, except for calls that sleep, so
that one can't quietly become something else.
"""

import os
import re
import subprocess
import sys

import tree

PREFIX = "call_"
SLEEP = {"fi_cq_sread", "fi_cq_sreadfrom", "fi_cntr_wait"}

# Calls that the compiler adds to every function of the kernel.
HARDENING = {"__fentry__", "__x86_return_thunk", "__stack_chk_fail"}
PREFIXES = {"cs", "ds", "es", "ss", "bnd", "notrack", "data16", "rep", "repz", "repnz", "lock"}
READS_ONLY = re.compile(r"cmp|test|call|jmp|j[a-z]+$|lea|nop|push|bt[wlq]?$|prefetch")
STACK = re.compile(r"\(%r[sb]p")


def inlines(top):
    """name -> (header, head) of the data calls in include/kofi."""
    have = {}
    for path in tree.files(top, ".h"):
        if path.startswith("include/kofi/") and not path.endswith("/provider.h"):
            for item in tree.items(tree.read(top, path)):
                if item.kind == "function":
                    have[item.name] = (path, item)
    found = {n for n, (_, i) in have.items()
             if re.search(r"->\s*\w+\s*\)?\s*->\s*\w+\s*\(", i.body)}
    grown = True
    while grown:
        more = {n for n, (_, i) in have.items()
                if set(re.findall(r"(\w+)\s*\(", i.body)) & found}
        grown = not more <= found
        found |= more
    return {n: (have[n][0], have[n][1].head) for n in found}


def split_args(text):
    depth, arg = 0, ""
    for c in text + ",":
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            yield arg.strip()
            arg = ""
        else:
            arg += c


def wrapper(name, head):
    head = " ".join(tree.ATTRIBUTE.sub(" ", head).split())
    head = re.sub(r"\b(static|inline|__always_inline|__must_check)\b\s*", "", head)
    params = head[head.index("(") + 1:head.rindex(")")]
    args = [] if params.strip() == "void" else [
        re.search(r"(\w+)(?:\[\w*\])?$", a).group(1) for a in split_args(params)]
    void = re.match(r"void\s+\w+\s*\(", head)
    return (re.sub(rf"\b{name}\b", PREFIX + name, head, count=1) +
            f"\n{{\n\t{'' if void else 'return '}{name}({', '.join(args)});\n}}\n")


def source(calls):
    heads = sorted({path.removeprefix("include/") for path, _ in calls.values()})
    text = "".join(f"#include <{h}>\n" for h in heads)
    for name, (_, head) in sorted(calls.items()):
        made = wrapper(name, head)
        text += f"\n{made[:made.index('{')].rstrip()};\n{made}"
    return text


def functions(dump):
    """name -> [(instruction, relocation or None)] from objdump -dr."""
    found, code = {}, None
    for line in dump.splitlines():
        m = re.match(r"[0-9a-f]+ <(\w+)>:$", line)
        if m:
            code = found.setdefault(m.group(1), [])
        elif code is not None:
            m = re.match(r"\s*[0-9a-f]+: (R_\w+)\s+(\S+)", line)
            if m and code:
                code[-1] = (code[-1][0], re.sub(r"[+-]0x[0-9a-f]+$", "", m.group(2)))
                continue
            m = re.match(r"\s*[0-9a-f]+:\s+(\S.*)", line)
            if m:
                code.append((m.group(1).strip(), None))
    return found


def judge_insn(insn, reloc, own):
    """(is an indirect call, complaint or None) for one instruction."""
    words = insn.split()
    while words and words[0].split(",")[0] in PREFIXES:
        if words[0] == "lock":
            return False, f"locked instruction: {insn}"
        words.pop(0)
    if not words:
        return False, None
    op, operand = words[0], " ".join(words[1:])
    if re.fullmatch(r"callq?|j\w+", op):
        if operand.startswith("*"):
            return True, None
        if reloc is None or reloc in HARDENING or reloc == f".text.{own}":
            return False, None
        if reloc.startswith("__x86_indirect_thunk_"):
            return True, None
        return False, f"direct call of {reloc}"
    target = re.search(r"(?:%[d-g]s:)?-?(?:0x[0-9a-f]+)?(?:\([^)]*\))?$", operand).group(0)
    if ("(" in target or target.startswith("%gs:")) and not (
            READS_ONLY.match(op) or STACK.search(target) or op.startswith("stos")):
        return False, f"writes memory: {insn}"
    return False, None


def judge(dump, wanted, report):
    found = functions(dump)
    for name in sorted(wanted):
        code = found.get(PREFIX + name)
        if code is None:
            report.add(name, 0, "not in the object")
            continue
        calls = 0
        for insn, reloc in code:
            indirect, complaint = judge_insn(insn, reloc, PREFIX + name)
            calls += indirect
            if complaint:
                report.add(name, 0, complaint)
        if calls != 1:
            report.add(name, 0, f"{calls} indirect calls, not one")


def claimed(top):
    """Names of the functions that call themselves data calls in their kernel-doc."""
    return {item.name for path in tree.files(top, ".h", ".c")
            if path.startswith(("include/kofi/", "kofi/")) and not path.endswith("/provider.h")
            for item in tree.items(tree.read(top, path))
            if re.search(r"Context: Data call\b", item.doc)}


def compare(calls, claims, report):
    for name in sorted(set(calls) - claims):
        report.add(name, 0, "is a data call, and its kernel-doc doesn't say so")
    for name in sorted(claims - set(calls)):
        report.add(name, 0, "says that it is a data call, and isn't inline")


if __name__ == "__main__":
    out = tree.Report()
    data_calls = inlines(tree.TOP)
    if sys.argv[1] == "source":
        compare(data_calls, claimed(tree.TOP) | SLEEP, out)
        with open(os.path.join(sys.argv[2], "datacalls.c"), "w", encoding="utf-8") as c:
            c.write(source(data_calls))
    else:
        text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", sys.argv[2]],
                              capture_output=True, text=True, check=True).stdout
        judge(text, data_calls, out)
        print(f"{len(data_calls)} data calls")
    out.finish()
