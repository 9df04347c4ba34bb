# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""tools/kofi_info on what the core said once: python3 -m unittest discover tests/tools"""

import contextlib
import errno
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
TOOL = HERE.parents[1] / "tools" / "kofi_info"


def load():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("kofi_info", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("kofi_info", loader))
    loader.exec_module(module)
    return module


tool = load()
INFO = (HERE / "loop.info").read_text()
PROVIDERS = (HERE / "loop.providers").read_text()


class Parser(unittest.TestCase):
    def test_values(self):
        for text, value in (("17", 17), ("-1", -1), ("(null)", None), ("FI_EP_RDM", "FI_EP_RDM"),
                            ("[ ]", []), ("[ FI_MSG ]", ["FI_MSG"]), ("0.1", "0.1"),
                            ("[ FI_MSG, FI_RMA, 0x80 ]", ["FI_MSG", "FI_RMA", "0x80"])):
            with self.subTest(text):
                self.assertEqual(tool.value(text), value)

    def test_every_line_becomes_a_field(self):
        def count(fields):
            return sum(1 + (count(v) if isinstance(v, dict) else 0) for v in fields.values())
        entries = tool.parse(INFO)
        self.assertEqual([title for title, _ in entries], ["fi_info", "fi_info"])
        self.assertEqual(sum(1 + count(fields) for _, fields in entries),
                         len(INFO.splitlines()))

    def test_fields_find_their_structures(self):
        fields = tool.parse(INFO)[1][1]
        self.assertEqual(fields["fi_domain_attr"]["name"], "loop1")
        self.assertEqual(fields["fi_domain_attr"]["numa_node"], -1)
        self.assertEqual(fields["fi_fabric_attr"]["name"], "loop")
        self.assertEqual(fields["nic"]["fi_device_attr"]["driver"], "kofi_loop")
        self.assertIsNone(fields["nic"]["fi_device_attr"]["firmware"])
        self.assertEqual(fields["nic"]["fi_link_attr"]["mtu"], 1048576)
        self.assertIn("FI_RMA", fields["caps"])

    def test_a_name_with_a_colon(self):
        self.assertEqual(tool.parse("x:\n    src_addr: fe80::1\n"),
                         [("x", {"src_addr": "fe80::1"})])

    def test_nonsense_is_refused(self):
        for text in ("x:\n  odd: 1\n", "x:\n        deep: 1\n", "no colon\n", "x:\n    y: 1\n"
                     "            z: 1\n", ": 1\n"):
            with self.subTest(text), self.assertRaises(tool.Problem) as caught:
                tool.parse(text)
            self.assertEqual(caught.exception.status, errno.EPROTO)

    def test_entries_keep_their_text(self):
        self.assertEqual("".join(e.text for e in tool.entries_of(INFO)), INFO)


class Command(unittest.TestCase):
    """The whole of it, with the core's files in a directory."""

    def run_tool(self, *args, info=INFO, providers=PROVIDERS):
        out, err = io.StringIO(), io.StringIO()
        with tempfile.TemporaryDirectory() as directory:
            for name, text in (("info", info), ("providers", providers)):
                if text is not None:
                    pathlib.Path(directory, name).write_text(text)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = tool.main(["--directory", directory, *args])
        return status, out.getvalue(), err.getvalue()

    def domains(self, *args):
        status, out, _ = self.run_tool(*args, "--json")
        if status:
            return status
        return [entry["fi_domain_attr"]["name"] for entry in json.loads(out)]

    def test_short(self):
        status, out, err = self.run_tool("-d", "loop0")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, "provider: loop\n    fabric: loop\n    domain: loop0\n"
                         "    version: 0.1\n    type: FI_EP_RDM\n    protocol: FI_PROTO_UNSPEC\n")

    def test_long_is_what_the_core_said(self):
        status, out, _ = self.run_tool("-v")
        self.assertEqual(status, 0)
        self.assertEqual(out.replace("---\n", ""), INFO)
        self.assertEqual(out.count("---\n"), 2)

    def test_filters(self):
        both = ["loop0", "loop1"]
        for args, expected in (
                ((), both), (("-p", "loop"), both), (("-p", "LOOP"), both),
                (("--provider", "efa"), errno.ENODATA),
                (("-d", "loop1"), ["loop1"]), (("-d", "loop"), errno.ENODATA),
                (("-f", "loop"), both), (("--fabric", "efa"), errno.ENODATA),
                (("-t", "FI_EP_RDM"), both), (("--ep_type", "fi_ep_rdm"), both),
                (("--ep-type", "FI_EP_DGRAM"), errno.ENODATA),
                (("-c", "FI_MSG|FI_RMA"), both), (("-c", "fi_tagged"), both),
                (("-c", "FI_MSG|FI_ATOMIC"), errno.ENODATA),
                (("-m", ""), both), (("-m", "FI_CONTEXT"), both)):
            with self.subTest(args):
                self.assertEqual(self.domains(*args), expected)

    def test_mode_bits_that_the_caller_cannot_serve(self):
        info = INFO.replace("    mode: [ ]\n", "    mode: [ FI_CONTEXT ]\n", 1)
        status, out, _ = self.run_tool("-m", "FI_MSG_PREFIX", info=info)
        self.assertEqual((status, out.count("loop0"), out.count("loop1")), (0, 0, 1))

    def test_names_that_look_like_something_else(self):
        for name in ("5", "0", "-1", "[x]"):
            with self.subTest(name):
                info = INFO.replace("name: loop0", f"name: {name}").replace(
                    "name: loop\n", f"name: {name}\n")
                for option in ("-d", "-f", "-p"):
                    status, out, _ = self.run_tool(option, name, "--json", info=info)
                    self.assertEqual(status, 0)
                    self.assertEqual(json.loads(out)[0]["fi_domain_attr"]["name"], name)
                self.assertEqual(self.run_tool("-d", "other", info=info)[0], errno.ENODATA)
        providers = PROVIDERS.replace("version: 0.1", "version: 1")
        out = self.run_tool("-l", "--json", providers=providers)[1]
        self.assertEqual(json.loads(out)[0]["version"], "1")

    def test_list(self):
        status, out, _ = self.run_tool("-l")
        self.assertEqual((status, out), (0, PROVIDERS))
        _, out, _ = self.run_tool("-l", "--json")
        self.assertEqual(json.loads(out), [{"name": "loop", "version": "0.1",
                                            "module": "kofi_loop", "users": 0}])

    def test_nothing_found(self):
        for args, info, providers, text in (
                ((), "", "", "no provider is loaded"),
                ((), "", PROVIDERS, "nothing found"),
                (("-p", "efa"), INFO, PROVIDERS, "no provider is called efa, there is: loop "
                 "(modprobe kofi-prov-efa would load it)"),
                (("-l", "-p", "efa"), INFO, PROVIDERS, "no provider is called efa"),
                (("-c", "FI_ATOMIC"), INFO, PROVIDERS, "nothing found")):
            with self.subTest(text):
                status, out, err = self.run_tool(*args, info=info, providers=providers)
                self.assertEqual((status, out), (errno.ENODATA, ""))
                self.assertIn(text, err)

    def test_why(self):
        for args, text in (
                (("-p", "efa"), "loop, loop, loop0: --provider is efa, the entry has loop\n"
                 "loop, loop, loop1: --provider is efa, the entry has loop\n"),
                (("-f", "x"), "loop0: --fabric is x, the entry has loop\n"),
                (("-d", "loop1"), "loop0: --domain is loop1, the entry has loop0\n"),
                (("-t", "fi_ep_dgram"), "loop0: --ep-type is fi_ep_dgram, the entry has FI_EP_RDM\n"),
                (("-c", "FI_MSG|FI_ATOMIC"), "loop0: --caps has FI_ATOMIC, the entry lacks it\n")):
            with self.subTest(args):
                self.assertIn(text, self.run_tool("--why", *args)[2])
                self.assertNotIn("the entry", self.run_tool(*args)[2])
        info = INFO.replace("    mode: [ ]\n", "    mode: [ FI_CONTEXT ]\n", 1)
        self.assertIn("loop0: --mode lacks FI_CONTEXT, the entry requires it\n",
                      self.run_tool("--why", "-m", "", info=info)[2])
        self.assertEqual(self.run_tool("--why")[2], "")

    def test_unknown_names_are_refused(self):
        for option, name in (("-c", "FI_RAM"), ("-c", "FI_MSG|RMA"), ("-m", "FI_CONTEXT3"),
                             ("-t", "FI_EP_STREAM")):
            with self.subTest(name), self.assertRaises(SystemExit) as caught, \
                    contextlib.redirect_stderr(io.StringIO()) as err:
                tool.main([option, name])
            self.assertEqual(caught.exception.code, 2)
            self.assertIn(name.split("|")[-1], err.getvalue())

    def test_known_names_are_the_core_s(self):
        attr = (HERE.parents[1] / "kofi" / "attr.c").read_text()
        for table, names in (("caps", tool.CAPS), ("modes", tool.MODES), ("ep_types", tool.EP_TYPES)):
            rows = re.search(rf"kofi_{table}\[\] = {{(.*?)}}\n?;", attr, re.S)[1]
            with self.subTest(table):
                self.assertEqual(set(re.findall(r"NAME\((\w+)\)", rows)), names)

    def test_unreadable(self):
        status, out, err = self.run_tool(info=None)
        self.assertEqual((status, out), (errno.ENOENT, ""))
        self.assertIn("No such file", err)


class Reasons(unittest.TestCase):
    """Texts of explain() for an error, on a simulated machine."""

    def reason(self, error, loaded=True, mounted=True):
        path = tool.os.path
        with unittest.mock.patch.object(path, "isdir", lambda _: loaded), \
                unittest.mock.patch.object(path, "ismount", lambda _: mounted):
            problem = tool.explain(tool.DIRECTORY, error)
        return problem.status, str(problem)

    def test_reasons(self):
        missing = FileNotFoundError(errno.ENOENT, "No such file", "/x/info")
        denied = PermissionError(errno.EACCES, "Permission denied", "/x/info")
        for error, state, status, text in (
                (missing, {"loaded": False}, errno.ENODEV, "modprobe kofi"),
                (missing, {"mounted": False}, errno.ENOENT, "mount -t debugfs"),
                (missing, {}, errno.ENOENT, "/x/info"),
                (denied, {}, errno.EACCES, "only root"),
                (OSError(errno.EIO, "I/O error", "/x/info"), {}, errno.EIO, "I/O error")):
            with self.subTest(text):
                have = self.reason(error, **state)
                self.assertEqual(have[0], status)
                self.assertIn(text, have[1])


if __name__ == "__main__":
    unittest.main()
