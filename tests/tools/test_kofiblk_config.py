# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""tools/kofiblk-config on a tree like configfs': python3 -m unittest discover tests/tools"""

import contextlib
import errno
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "kofiblk-config"
SECRET = "5a" * 32


def load():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("kofiblk_config", str(TOOL))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("kofiblk_config", loader))
    loader.exec_module(module)
    return module


tool = load()


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = pathlib.Path(directory.name)
        self.config = self.top / "configfs"
        self.config.mkdir()
        self.file = self.top / "server.json"
        (self.top / "secret").write_text(SECRET + "\n")
        for name, value in (("CONFIG", str(self.config)), ("make", self.make)):
            patch = unittest.mock.patch.object(tool, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.wanted = {
            "exports": {
                "disk0": {
                    "path": "/dev/nvme1n1", "read_only": False, "direct": True,
                    "uuid": "7c9f5f6a-2b0e-4f6c-9d3a-0123456789ab", "allow_any": False,
                    "enable": True,
                    "clients": {"host-a": {"secret_file": str(self.top / "secret")}},
                },
                "off": {"path": "/srv/file", "enable": False, "clients": {}},
            },
            "ports": {
                "1": {"addr": "10.0.0.1", "port": 4420, "prov": "efa", "own_domains": True,
                      "max_memory": 1 << 20, "enable": True, "exports": ["disk0", "off"]},
            },
        }

    def make(self, *path):
        """As configfs does, with the directory's default groups."""
        directory = self.config.joinpath(*path)
        directory.mkdir(parents=True)
        if len(path) == 2:
            (directory / {"exports": "clients", "ports": "exports"}[path[0]]).mkdir()

    def run_tool(self, *args):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            status = tool.main([*args, str(self.file)])
        return status, err.getvalue()

    def restore(self, wanted):
        self.file.write_text(wanted if isinstance(wanted, str) else json.dumps(wanted))
        return self.run_tool("restore")


class Restore(Case):
    def test_what_is_written(self):
        self.assertEqual(self.restore(self.wanted), (0, ""))
        export = self.config / "exports" / "disk0"
        self.assertEqual((export / "path").read_text(), "/dev/nvme1n1\n")
        self.assertEqual((export / "direct").read_text(), "1\n")
        self.assertEqual((export / "enable").read_text(), "1\n")
        self.assertEqual((export / "clients/host-a/secret").read_text(), SECRET + "\n")
        self.assertFalse((self.config / "exports/off/enable").exists())
        port = self.config / "ports" / "1"
        self.assertEqual((port / "port").read_text(), "4420\n")
        self.assertEqual(os.readlink(port / "exports/disk0"), str(export))

    def test_ports_come_last_and_are_enabled_last(self):
        order = []

        def write(_value, *path):
            order.append("/".join(path))
        with unittest.mock.patch.object(tool, "write", write):
            self.assertEqual(self.restore(self.wanted), (0, ""))
        self.assertEqual(order[-1], "ports/1/enable")
        self.assertLess(order.index("exports/disk0/clients/host-a/secret"),
                        order.index("exports/disk0/enable"))
        self.assertLess(order.index("exports/disk0/enable"), order.index("ports/1/addr"))

    def test_a_client_is_not_made_without_its_secret(self):
        (self.top / "secret").unlink()
        status, err = self.restore(self.wanted)
        self.assertEqual(status, errno.ENOENT)
        self.assertIn("secret", err)
        self.assertFalse((self.config / "exports/disk0/clients/host-a").exists())
        self.assertFalse((self.config / "ports").exists())

    def test_not_over_something_else(self):
        (self.config / "ports" / "2").mkdir(parents=True)
        self.assertEqual(self.restore(self.wanted)[0], errno.EBUSY)

    def test_no_module(self):
        self.config.rmdir()
        status, err = self.restore(self.wanted)
        self.assertEqual(status, errno.ENODEV)
        self.assertIn("modprobe", err)

    def test_nothing_of_what_is_wrong_is_applied(self):
        def changed(path, value):
            config = json.loads(json.dumps(self.wanted))
            where = config
            for key in path[:-1]:
                where = where[key]
            where[path[-1]] = value
            return config
        for wanted in (
                "", "[]", "{\"exports\": []}", changed(("what",), {}),
                changed(("exports", "disk0", "what"), 1),
                changed(("exports", "disk0", "read_only"), "yes"),
                changed(("exports", "disk0", "path"), ["/dev/sda"]),
                changed(("exports", "disk0", "path"), "/dev/sda\n1"),
                changed(("exports", "../../etc"), {}), changed(("exports", ".."), {}),
                changed(("exports", "disk0", "clients"), []),
                changed(("exports", "disk0", "clients", "a/b"), {}),
                changed(("exports", "disk0", "clients", "host-a", "secret"), SECRET),
                changed(("ports", "1", "exports"), "disk0"),
                changed(("ports", "1", "exports"), ["nothing"])):
            with self.subTest(wanted):
                status, err = self.restore(wanted)
                self.assertEqual(status, errno.EINVAL)
                self.assertIn("server.json", err)
                self.assertEqual(list(self.config.iterdir()), [])


class Save(Case):
    def test_what_was_restored(self):
        self.assertEqual(self.restore(self.wanted), (0, ""))
        # The kernel shows it, whatever it is.
        (self.config / "exports/off/enable").write_text("0\n")
        self.assertEqual(self.run_tool("save"), (0, ""))
        self.assertEqual(json.loads(self.file.read_text()), self.wanted)

    def test_a_secret_that_nobody_knows(self):
        self.assertEqual(self.restore(self.wanted), (0, ""))
        (self.config / "exports/off/enable").write_text("0\n")
        self.file.unlink()
        status, err = self.run_tool("save")
        self.assertEqual(status, 0)
        self.assertIn("disk0/host-a: no secret_file", err)
        saved = json.loads(self.file.read_text())
        self.assertEqual(saved["exports"]["disk0"]["clients"], {"host-a": {}})

    def test_a_file_that_is_wrong_is_not_written_over(self):
        self.file.write_text("{")
        self.assertEqual(self.run_tool("save")[0], errno.EINVAL)
        self.assertEqual(self.file.read_text(), "{")

    def test_check(self):
        self.file.write_text(json.dumps(self.wanted))
        self.assertEqual(self.run_tool("check"), (0, ""))
        self.file.write_text("{")
        self.assertEqual(self.run_tool("check")[0], errno.EINVAL)


if __name__ == "__main__":
    unittest.main()
