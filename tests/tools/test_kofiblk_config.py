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
import re
import shutil
import signal
import subprocess
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
        # Files with secrets that others can read are refused.
        self.addCleanup(os.umask, os.umask(0o077))
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = pathlib.Path(directory.name)
        for number in tool.SIGNALS:
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.config = self.top / "configfs"
        self.config.mkdir()
        self.file = self.top / "server.json"
        (self.top / "secret").write_text(SECRET + "\n")
        for name, value in (("CONFIG", str(self.config)), ("make", self.make),
                            ("remove", self.remove), ("SESSIONS", str(self.top / "sessions")),
                            ("EPOCHS", str(self.top / "epochs"))):
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
            (directory / "enable").write_text("0\n")

    def remove(self, *path):
        """As configfs does, with the directory's attributes."""
        shutil.rmtree(self.config.joinpath(*path))

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
        self.assertEqual((self.config / "exports/off/enable").read_text(), "0\n")
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
        self.assertEqual(list(self.config.iterdir()), [])

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
                changed(("exports", "disk0", "uuid"), "y"),
                changed(("exports", "disk0", "uuid"), "7c9f5f6a2b0e4f6c9d3a0123456789ab"),
                changed(("exports", "disk0", "path"), "dev/sda"),
                changed(("exports", "disk0", "enable"), 1),
                changed(("exports", "off", "enable"), True),
                changed(("exports", "disk 1"), {}),
                changed(("ports", "1", "addr"), "999.1.1.1"),
                changed(("ports", "1", "addr"), 7),
                changed(("ports", "1", "port"), "abc"), changed(("ports", "1", "port"), 0),
                changed(("ports", "1", "port"), 65536), changed(("ports", "1", "port"), True),
                changed(("ports", "1", "max_memory"), -1),
                changed(("ports", "1", "max_sessions"), "many"),
                changed(("ports", "1", "exports"), "disk0"),
                changed(("ports", "1", "exports"), ["nothing"])):
            with self.subTest(wanted):
                status, err = self.restore(wanted)
                self.assertEqual(status, errno.EINVAL)
                self.assertIn("server.json", err)
                self.assertEqual(list(self.config.iterdir()), [])


    def test_all_or_nothing(self):
        real = tool.write
        for broken in ("exports/off/path", "ports/1/addr", "ports/1/enable"):
            with self.subTest(broken):
                def write(value, *path, broken=broken):
                    if "/".join(path) == broken and value is not False:
                        raise tool.Problem(errno.EIO, broken)
                    real(value, *path)
                with unittest.mock.patch.object(tool, "write", write):
                    status, err = self.restore(self.wanted)
                self.assertEqual(status, errno.EIO)
                self.assertIn(broken, err)
                left = [path for kind in ("exports", "ports")
                        for path in (self.config / kind).glob("*")]
                self.assertEqual(left, [])
        self.assertEqual(self.restore(self.wanted), (0, ""))

    def test_exports_are_disabled_before_they_are_removed(self):
        order = []
        real = tool.write

        def write(value, *path):
            if value is False and path[-1] == "enable":
                order.append("/".join(path))
            if path == ("ports", "1", "enable") and value is True:
                raise tool.Problem(errno.EIO, "port")
            real(value, *path)
        with unittest.mock.patch.object(tool, "write", write):
            self.restore(self.wanted)
        self.assertEqual(order, ["exports/disk0/enable"])

    def test_it_waits_for_sessions_that_end_slowly(self):
        left = 3
        real = tool.write

        def write(value, *path):
            nonlocal left
            if path == ("exports", "disk0", "enable") and value is False and left:
                left -= 1
                raise tool.Problem(errno.EINPROGRESS, "disk0")
            if path == ("ports", "1", "enable") and value is True:
                raise tool.Problem(errno.EIO, "port")
            real(value, *path)
        with unittest.mock.patch.object(tool, "write", write):
            self.restore(self.wanted)
        self.assertEqual(left, 0)
        self.assertFalse(list((self.config / "exports").glob("*")))

    def test_an_epoch_is_restored_once(self):
        uuid = self.wanted["exports"]["disk0"]["uuid"]
        epochs = self.top / "epochs"
        for kept, wanted in ((f"{uuid} 0x0123456789abcdef\n", "0x0123456789abcdef\n"),
                             (f"{uuid} 0x0000000000000000\n", None),
                             ("3f1c7a52-9d44-4b0e-8f7b-5e2d6c8a9b10 0x0123456789abcdef\n", None),
                             (f"{uuid} 0x01", None), ("", None), (None, None)):
            with self.subTest(kept):
                epochs.mkdir()
                if kept is not None:
                    (epochs / "disk0").write_text(kept)
                    (epochs / "another").write_text(kept)
                order = []
                real = tool.write

                def write(value, *path, order=order, real=real):
                    order.append(path[-1])
                    self.assertFalse(path[-1] == "enable" and list(epochs.glob("*")))
                    real(value, *path)
                with unittest.mock.patch.object(tool, "write", write):
                    self.assertEqual(self.restore(self.wanted), (0, ""))
                path = self.config / "exports/disk0/epoch"
                self.assertEqual(path.read_text() if path.exists() else None, wanted)
                if wanted:
                    self.assertLess(order.index("epoch"), order.index("enable"))
                shutil.rmtree(epochs, ignore_errors=True)
                tool.remove_all()

    def test_a_start_that_fails_keeps_epochs(self):
        uuid = self.wanted["exports"]["disk0"]["uuid"]
        epochs = self.top / "epochs"
        real = tool.write
        for last, kept in (("0x00000000000000aa", "0x00000000000000aa"),
                           ("0x0000000000000000", "0x0000000000000000")):
            for fails in ("exports/disk0/path", "ports/1/enable"):
                with self.subTest(fails=fails, last=last):
                    epochs.mkdir()
                    (epochs / "disk0").write_text(f"{uuid} 0x0000000000000001\n")
                    (epochs / "away").write_text(f"{uuid} 0x0000000000000002\n")

                    def write(value, *path, fails=fails, last=last):
                        if "/".join(path) == fails and value:
                            raise tool.Problem(errno.EADDRNOTAVAIL, fails)
                        # Disabling sets what the last flush has left.
                        if path == ("exports", "disk0", "enable") and value is False:
                            real(last, "exports", "disk0", "epoch")
                        real(value, *path)
                    with unittest.mock.patch.object(tool, "write", write):
                        self.assertEqual(self.restore(self.wanted)[0], errno.EADDRNOTAVAIL)
                    wanted = kept if fails.startswith("ports") else "0x0000000000000001"
                    self.assertEqual((epochs / "disk0").read_text(), f"{uuid} {wanted}\n")
                    self.assertEqual((epochs / "away").read_text(),
                                     f"{uuid} 0x0000000000000002\n")
                    self.assertEqual(list(self.config.glob("*/*")), [])
                    shutil.rmtree(epochs)

    def test_a_start_that_is_ended_keeps_epochs(self):
        uuid = self.wanted["exports"]["disk0"]["uuid"]
        epochs = self.top / "epochs"
        real_write, real_rmtree = tool.write, shutil.rmtree
        for when in ("take", "exports/disk0/path", "ports/1/enable"):
            with self.subTest(when=when):
                epochs.mkdir()
                for name in ("disk0", "away"):
                    (epochs / name).write_text(f"{uuid} 0x0000000000000001\n")

                def write(value, *path, when=when):
                    if "/".join(path) == when and value:
                        os.kill(os.getpid(), signal.SIGTERM)
                    # Another signal doesn't interrupt the roll-back.
                    if path[-1] == "enable" and value is False:
                        os.kill(os.getpid(), signal.SIGTERM)
                    real_write(value, *path)

                def rmtree(path, when=when, **options):
                    real_rmtree(path, **options)
                    if when == "take":
                        os.kill(os.getpid(), signal.SIGTERM)
                with unittest.mock.patch.object(tool, "write", write), \
                        unittest.mock.patch.object(tool.shutil, "rmtree", rmtree):
                    status, err = self.restore(self.wanted)
                self.assertEqual((status, "SIGTERM" in err), (errno.EINTR, True))
                self.assertEqual(sorted(os.listdir(epochs)), ["away", "disk0"])
                self.assertEqual(list(self.config.glob("*/*")), [])
                shutil.rmtree(epochs)

    def test_a_roll_back_that_fails_keeps_epochs_of_exports_that_do_not_exist(self):
        """Those that exist may be enabled again, and kofiblk-server stop asks them."""
        uuid = self.wanted["exports"]["disk0"]["uuid"]
        self.wanted["exports"]["later"] = {"path": "/srv/later", "uuid": uuid}
        epochs = self.top / "epochs"
        epochs.mkdir()
        for name in ("disk0", "off", "later", "away"):
            (epochs / name).write_text(f"{uuid} 0x00000000000000aa\n")
        real = tool.write

        def write(value, *path):
            if path == ("exports", "off", "path"):
                raise tool.Problem(errno.EIO, "off")
            if path == ("exports", "disk0", "enable") and value is False:
                raise tool.Problem(errno.EACCES, "disk0")
            real(value, *path)
        with unittest.mock.patch.object(tool, "write", write):
            status, err = self.restore(self.wanted)
        self.assertEqual(status, errno.EIO)
        self.assertIn("disk0; run kofiblk-server stop", err)
        self.assertEqual(sorted(os.listdir(self.config / "exports")), ["disk0", "off"])
        self.assertEqual({path.name: path.read_text() for path in epochs.glob("*")},
                         {name: f"{uuid} 0x00000000000000aa\n" for name in ("later", "away")})

    def test_a_secret_that_others_can_read(self):
        (self.top / "secret").chmod(0o644)
        status, err = self.restore(self.wanted)
        self.assertEqual(status, errno.EPERM)
        self.assertIn("chmod 600", err)
        self.assertEqual(list(self.config.iterdir()), [])


class Save(Case):
    def test_what_was_restored(self):
        self.assertEqual(self.restore(self.wanted), (0, ""))
        self.assertEqual(self.run_tool("save"), (0, ""))
        self.assertEqual(json.loads(self.file.read_text()), self.wanted)

    def test_a_secret_that_nobody_knows(self):
        self.assertEqual(self.restore(self.wanted), (0, ""))
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

    def test_no_module(self):
        before = json.dumps(self.wanted)
        self.file.write_text(before)
        self.config.rmdir()
        status, err = self.run_tool("save")
        self.assertEqual((status, self.file.read_text()), (errno.ENODEV, before))
        self.assertIn("modprobe", err)

    def test_nothing_over_something(self):
        before = json.dumps(self.wanted)
        self.file.write_text(before)
        status, err = self.run_tool("save")
        self.assertEqual((status, self.file.read_text()), (errno.ENOENT, before))
        self.assertIn("no exports and ports", err)

    def test_nothing_over_nothing(self):
        for _ in range(2):
            self.assertEqual(self.run_tool("save"), (0, ""))
            self.assertEqual(json.loads(self.file.read_text()), {"exports": {}, "ports": {}})

    def test_the_file_before_is_kept(self):
        self.assertEqual(self.restore(self.wanted), (0, ""))
        before = self.file.read_text()
        self.file.chmod(0o640)
        for _ in range(2):
            self.file.write_text(before)
            self.assertEqual(self.run_tool("save"), (0, ""))
            self.assertEqual((self.top / "server.json~").read_text(), before)
            self.assertNotEqual(self.file.read_text(), before)
            self.assertEqual(self.file.stat().st_mode & 0o777, 0o640)

    def test_check(self):
        self.file.write_text(json.dumps(self.wanted))
        self.assertEqual(self.run_tool("check"), (0, ""))
        (self.top / "secret").write_text("5a")
        self.assertEqual(self.run_tool("check")[0], errno.EINVAL)
        (self.top / "secret").unlink()
        status, err = self.run_tool("check")
        self.assertEqual(status, errno.ENOENT)
        self.assertIn(str(self.top / "secret"), err)
        self.assertEqual(list(self.config.iterdir()), [])
        self.file.write_text("{")
        self.assertEqual(self.run_tool("check")[0], errno.EINVAL)


class Status(Case):
    def status(self, *args):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = tool.main(["status", *args])
        return status, out.getvalue()

    def serve(self):
        self.assertEqual(self.restore(self.wanted), (0, ""))
        (self.config / "exports/disk0/lost").write_text("-5\n")
        (self.top / "sessions").write_text(
            "client=host-a export=disk0 peer=10.0.0.2:40000 state=live queues=2 depth=64 "
            "caps=0x3 io=1 in_flight=7 memory=4096 reads=1 errors=2\nstray=0\n")

    def test_json(self):
        self.serve()
        status, out = self.status("--json")
        found = json.loads(out)
        self.assertEqual(status, 0)
        self.assertEqual(found["exports"]["disk0"]["lost"], -5)
        self.assertEqual(found["exports"]["disk0"]["clients"], ["host-a"])
        self.assertEqual(found["ports"]["1"]["exports"], ["disk0", "off"])
        self.assertEqual([(session["client"], session["in_flight"], session["caps"])
                          for session in found["sessions"]], [("host-a", 7, "0x3")])

    def test_tables(self):
        self.serve()
        status, out = self.status()
        ports, exports, sessions = (block.splitlines() for block in out.split("\n\n"))
        self.assertEqual(status, 0)
        self.assertEqual(ports[1].split(), ["1", "10.0.0.1:4420", "enabled", "disk0", "off"])
        self.assertEqual(exports[1].split()[:3], ["disk0", "/dev/nvme1n1", "enabled"])
        self.assertIn("Input/output error", exports[1])
        self.assertEqual(exports[2].split(), ["off", "/srv/file", "disabled", "no", "-"])
        self.assertEqual(sessions[1].split(),
                         ["host-a", "disk0", "10.0.0.2:40000", "live", "1", "7", "2"])

    def test_nothing(self):
        self.assertEqual(self.status(), (tool.NOT_RUNNING, "nothing is exported\n"))
        self.config.rmdir()
        status, out = self.status("--json")
        self.assertEqual((status, json.loads(out)["ports"]), (tool.NOT_RUNNING, {}))

    def test_by_the_name_that_administrators_know(self):
        server = TOOL.with_name("kofiblk-server")
        run = subprocess.run([server, "status", "--help"], stdout=subprocess.PIPE, text=True,
                             check=False)
        self.assertEqual(run.returncode, 0)
        self.assertIn("--json", run.stdout)


class Stop(Case):
    """kofiblk-server stop. A file that can't be written is a directory."""

    def setUp(self):
        super().setUp()
        server = TOOL.with_name("kofiblk-server").read_text()
        for name, value in (("CONFIG", self.config), ("EPOCHS", self.top / "epochs")):
            server = re.sub(f"^{name}=.*", f"{name}={value}", server, flags=re.MULTILINE)
        self.commands = self.top / "bin"
        self.commands.mkdir()
        # As configfs does, with the directory's attributes.
        self.command("rmdir", 'exec rm -r "$@"')
        self.server = self.top / "kofiblk-server"
        self.server.write_text(server)
        self.make("ports", "1")
        self.make("exports", "disk0")
        (self.config / "exports/disk0/uuid").write_text("uuid\n")
        (self.config / "exports/disk0/epoch").write_text("0x12\n")

    def command(self, name, text):
        (self.commands / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.commands / name).chmod(0o755)

    def stop(self):
        run = subprocess.run(["sh", self.server, "stop"], stderr=subprocess.PIPE, text=True,
                             timeout=60, check=False,
                             env={**os.environ, "PATH": f"{self.commands}:{os.environ['PATH']}"})
        return run.returncode, run.stderr

    def left(self):
        return sorted(str(path.relative_to(self.config)) for path in self.config.glob("*/*"))

    def test_everything_is_removed(self):
        self.assertEqual(self.stop(), (0, ""))
        self.assertEqual(self.left(), [])
        self.assertEqual((self.top / "epochs/disk0").read_text(), "uuid 0x12\n")
        self.assertEqual(self.stop(), (0, ""))

    def test_it_waits_for_sessions_that_end_slowly(self):
        """The export is disabled at once, and can be written only when its sessions have ended."""
        enable = self.config / "exports/disk0/enable"
        enable.unlink()
        enable.mkdir()
        self.command("cat", f"""if [ "$1" = exports/disk0/enable ]; then
    echo >> {self.top}/asked
    [ "$(wc -l < {self.top}/asked)" -lt 3 ] || {{ rm -r {enable}; : > {enable}; }}
    echo 0
else
    exec /bin/cat "$@"
fi""")
        self.assertEqual(self.stop(), (0, ""))
        self.assertEqual(self.left(), [])
        self.assertEqual(len((self.top / "asked").read_text()), 3)

    def test_what_is_removed_meanwhile(self):
        enable = self.config / "exports/disk0/enable"
        enable.unlink()
        enable.mkdir()
        # Somebody else removes the export.
        self.command("cat", f'[ "$1" = exports/disk0/enable ] && rm -r {enable.parent}; echo 0')
        self.assertEqual(self.stop(), (0, ""))
        self.assertEqual(self.left(), [])

    def test_what_cannot_be_disabled(self):
        """The others are disabled, and so flushed, but nothing is removed."""
        enable = {name: self.config / name / "enable" for name in ("exports/disk0", "ports/1")}
        for name, other in zip(enable, reversed(enable)):
            with self.subTest(name):
                enable[name].unlink()
                enable[name].mkdir()
                enable[other].write_text("1\n")
                status, err = self.stop()
                self.assertEqual(status, 1)
                self.assertIn(f"kofiblk-server: cannot disable {self.config / name}: ", err)
                self.assertEqual(len(err.splitlines()), 1)
                self.assertEqual(self.left(), list(enable))
                self.assertEqual(enable[other].read_text(), "0\n")
                self.assertFalse((self.top / "epochs").exists())
                enable[name].rmdir()
                enable[name].write_text("1\n")


if __name__ == "__main__":
    unittest.main()
