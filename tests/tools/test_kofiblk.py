# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""tools/kofiblk on a tree like sysfs': python3 -m unittest discover tests/tools"""

import contextlib
import errno
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
TOOL = HERE.parents[1] / "tools" / "kofiblk"


def load():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("kofiblk", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("kofiblk", loader))
    loader.exec_module(module)
    return module


tool = load()

DISK = {"state": "live", "address": "10.0.0.1:4420", "export": "disk0", "client": "here",
        "queues": "2", "depth": "64", "max_io": "1048576", "ctrl_loss_tmo": "-1",
        "reconnects": "3", "rdma_write": "1"}


class Case(unittest.TestCase):
    def setUp(self):
        # Files with secrets that others can read are refused.
        self.addCleanup(os.umask, os.umask(0o077))
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.block = pathlib.Path(directory.name)
        self.machine_id = self.block / "machine-id"
        self.machine_id.write_text("0123456789abcdef0123456789abcdef\n")
        for name, value in (("BLOCK", self.block), ("MACHINE_ID", self.machine_id),
                            ("HOST_ID", self.block / "hostid"), ("DEV", self.block / "dev"),
                            ("MOUNTS", self.block / "mounts"), ("SWAPS", self.block / "swaps"),
                            ("LOG", self.block / "log")):
            patch = unittest.mock.patch.object(tool, name, str(value))
            patch.start()
            self.addCleanup(patch.stop)

    def disk(self, name, sectors=2048, **attributes):
        inner = self.block / name / "kofiblk"
        inner.mkdir(parents=True)
        for attribute, value in {**DISK, **attributes}.items():
            (inner / attribute).write_text(value + "\n")
        (inner / "lost").write_text(attributes.get("lost", "0") + "\n")
        for action in ("delete", "reset", "secret"):
            (inner / action).write_text("")
            (inner / action).chmod(0o200)
        (self.block / name / "size").write_text(f"{sectors}\n")
        (self.block / name / "ro").write_text("0\n")

    def run_tool(self, *args):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = tool.main(args)
        return status, out.getvalue(), err.getvalue()


class List(Case):
    def test_nothing(self):
        self.assertEqual(self.run_tool("list"), (0, "", ""))
        self.assertEqual(json.loads(self.run_tool("list", "--json")[1]), [])

    def test_others_disks_are_not_shown(self):
        (self.block / "sda").mkdir()
        (self.block / "kofiblkx").mkdir()
        # One that is just being made, or going.
        (self.block / "kofiblk7").mkdir()
        self.assertEqual(json.loads(self.run_tool("list", "--json")[1]), [])

    def test_one_that_is_half_gone_is_not_shown(self):
        self.disk("kofiblk0")
        for attribute in ("state", "address", "export", "client"):
            with self.subTest(attribute):
                self.disk("kofiblk1")
                (self.block / "kofiblk1" / "kofiblk" / attribute).unlink()
                status, out, _ = self.run_tool("list")
                self.assertEqual((status, out.count("kofiblk")), (0, 1))
                shutil.rmtree(self.block / "kofiblk1")

    def test_nobody_reads_on(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            run = subprocess.run([sys.executable, "-B", TOOL, "list", "--json"], stdout=pipe,
                                 stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_in_the_order_of_their_numbers(self):
        for name in ("kofiblk10", "kofiblk2", "kofiblk0"):
            self.disk(name)
        lines = self.run_tool("list")[1].splitlines()
        self.assertEqual([line.split()[0] for line in lines],
                         ["disk", "kofiblk0", "kofiblk2", "kofiblk10"])

    def test_json_has_numbers(self):
        self.disk("kofiblk0", sectors=8)
        disk = json.loads(self.run_tool("list", "--json")[1])[0]
        self.assertEqual(disk["bytes"], 4096)
        self.assertEqual(disk["ctrl_loss_tmo"], -1)
        self.assertEqual(disk["reconnects"], 3)
        self.assertIs(disk["read_only"], False)
        self.assertEqual(disk["export"], "disk0")
        self.assertNotIn("delete", disk)

    def test_sizes(self):
        for count, text in ((0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1 << 20, "1 MiB"),
                            (3 << 29, "1.5 GiB"), (1 << 63, "8192 PiB")):
            with self.subTest(count):
                self.assertEqual(tool.size(count), text)


    def log(self, *records):
        """A log of the kernel, from which each read returns a record."""
        texts = [f"{level},{100 + i},{1000000 * i},-;{text}\n".encode()
                 for i, (level, text) in enumerate(records)] + [b""]
        (self.block / "log").write_text("")
        patch = unittest.mock.patch.object(tool.os, "read", lambda _file, _length: texts.pop(0))
        patch.start()
        self.addCleanup(patch.stop)

    def test_what_an_administrator_asks_first(self):
        self.disk("kofiblk0", lost="1")
        self.disk("kofiblk1", reconnects="0")
        self.log((3, "kofiblk: kofiblk1: session with 10.0.0.9:4420, export x, ended: -5"),
                 (6, "kofiblk: kofiblk1: removed"),
                 (6, "kofiblk: kofiblk1: connected to 10.0.0.1:4420, export disk0"),
                 (6, "kofiblk: kofiblk0: connected to 10.0.0.1:4420, export disk0"),
                 (3, "kofiblk: kofiblk0: session with 10.0.0.1:4420, export disk0, ended: -110"),
                 (3, "kofiblk: kofiblk0: refused by 10.0.0.1:4420: no room: -16"),
                 (6, "something else"))
        status, out, _ = self.run_tool("list")
        head, first, second, *rest = out.splitlines()
        self.assertEqual(status, 0)
        self.assertEqual(head.split()[6:], ["lost", "reconnects", "since"])
        self.assertEqual(first.split()[7:9], ["yes", "3"])
        self.assertEqual(second.split()[7:9], ["no", "0"])
        self.assertIn("kofiblk accept-loss kofiblk0", rest[1])
        self.assertIn("refused by 10.0.0.1:4420: no room: -16", rest[0])
        self.assertEqual(len(rest), 2)

    def test_since_when(self):
        self.disk("kofiblk0")
        self.log((6, "kofiblk: kofiblk0: connected to 10.0.0.1:4420, export disk0"),
                 (3, "kofiblk: kofiblk0: session with 10.0.0.1:4420, export disk0, ended: -110"),
                 (3, "kofiblk: kofiblk0: no session with 10.0.0.1:4420: connecting: -111"))
        disk = json.loads(self.run_tool("list", "--json", "disk0")[1])[0]
        self.assertIn("connecting: -111", disk["last_error"])
        # A message a second: the session ended before the last attempt.
        self.assertLess(disk["since"], disk["last_error"].split(" no session")[0])
        self.assertEqual(disk["lost"], 0)

    def test_only_the_disk_that_is_asked_for(self):
        self.disk("kofiblk0")
        self.disk("kofiblk1", export="disk1")
        self.assertEqual([disk["name"] for disk in
                          json.loads(self.run_tool("list", "--json", "disk1")[1])], ["kofiblk1"])
        self.assertEqual(self.run_tool("list", "disk2")[0], errno.ENODEV)


class Addresses(Case):
    """Of servers, as administrators write them and the kernel takes them."""

    def resolve(self, names):
        def getaddrinfo(host, port, **_):
            if host not in names:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return [(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_STREAM, 6, "",
                     (ip, port)) for ip in names[host]]
        patch = unittest.mock.patch.object(tool.socket, "getaddrinfo", getaddrinfo)
        patch.start()
        self.addCleanup(patch.stop)

    def test_numbers_with_and_without_a_port(self):
        for text, wanted in (("10.0.0.1:4421", "10.0.0.1:4421"), ("10.0.0.1", "10.0.0.1:4420"),
                             ("[fd00::1]:4421", "[fd00::1]:4421"), ("[fd00::1]", "[fd00::1]:4420"),
                             ("fd00::1", "[fd00::1]:4420")):
            with self.subTest(text):
                self.assertEqual(tool.addresses(text), [wanted])

    def test_names(self):
        self.resolve({"storage1": ["10.0.0.1", "fd00::1"], "storage2": ["10.0.0.1", "10.0.0.2"]})
        self.assertEqual(tool.addresses("storage1"), ["10.0.0.1:4420", "[fd00::1]:4420"])
        self.assertEqual(tool.addresses("storage1:1, storage2:1"),
                         ["10.0.0.1:1", "[fd00::1]:1", "10.0.0.2:1"])

    def test_a_name_that_nobody_knows(self):
        self.resolve({})
        status, _, err = self.run_tool("connect", "storage3", "disk0")
        self.assertEqual(status, errno.EHOSTUNREACH)
        self.assertIn("storage3: Name or service not known", err)

    def test_what_is_no_address(self):
        for text in ("", ",", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:http", "10.0.0.1:",
                     "[fd00::1", "[10.0.0.1]:", "a b"):
            with self.subTest(text):
                status, _, err = self.run_tool("connect", text, "disk0")
                self.assertEqual(status, errno.EINVAL)
                self.assertIn("address", err)

    def connect(self, address, answers):
        """Answers of the kernel by address, a number of an error or a disk."""
        self.told = []

        def ask(text):
            self.told.append(dict(option.split("=", 1) for option in text.split(","))["addr"])
            answer = answers[self.told[-1]]
            if isinstance(answer, int):
                raise OSError(answer, os.strerror(answer))
            return f"disk={answer}\n"
        with unittest.mock.patch.object(tool, "ask", ask):
            return self.run_tool("connect", address, "disk0")

    def test_they_are_tried_in_turn(self):
        status, out, err = self.connect("10.0.0.1,10.0.0.2,10.0.0.3", {
            "10.0.0.1:4420": errno.ECONNREFUSED, "10.0.0.2:4420": "kofiblk4"})
        self.assertEqual((status, out), (0, "/dev/kofiblk4\n"))
        self.assertEqual(self.told, ["10.0.0.1:4420", "10.0.0.2:4420"])
        self.assertIn("10.0.0.1:4420", err)

    def test_a_server_that_refuses_is_not_asked_again(self):
        self.assertEqual(self.connect("10.0.0.1,10.0.0.2", {"10.0.0.1:4420": errno.EACCES})[0],
                         errno.EACCES)
        self.assertEqual(self.told, ["10.0.0.1:4420"])

    def test_an_export_is_not_connected_by_two_of_them(self):
        # They would take the session from each other.
        self.disk("kofiblk0", address="10.0.0.2:4420", client=os.uname().nodename)
        self.assertEqual(self.connect("10.0.0.1,10.0.0.2", {})[0], errno.EALREADY)
        self.assertEqual(self.told, [])


class Connect(Case):
    def connect(self, *args, answer="disk=kofiblk0\n"):
        with unittest.mock.patch.object(tool, "ask") as ask:
            if isinstance(answer, Exception):
                ask.side_effect = answer
            else:
                ask.return_value = answer
            result = self.run_tool("connect", "10.0.0.1:4420", "disk0", *args)
        return result, ask

    def test_what_the_kernel_is_told(self):
        result, ask = self.connect("--ctrl-loss-tmo", "-1", "--prov", "efa")
        self.assertEqual(result, (0, "/dev/kofiblk0\n", ""))
        self.assertEqual(set(ask.call_args[0][0].split(",")),
                         {"addr=10.0.0.1:4420", "export=disk0", "prov=efa", "ctrl_loss_tmo=-1",
                          "host_id=" + tool.host_id(None)})

    def told_host_id(self, *args):
        return [option for option in self.connect(*args)[1].call_args[0][0].split(",")
                if option.startswith("host_id=")]

    def test_the_host_id_stays_and_is_not_the_machine_id(self):
        first = self.told_host_id()
        self.assertEqual(first, self.told_host_id())
        self.assertNotIn("01234567", first[0])
        self.machine_id.write_text("fedcba98765432100123456789abcdef\n")
        self.assertNotEqual(first, self.told_host_id())
        (self.block / "hostid").write_text("3F1C7A52-9d44-4b0e-8f7b-5e2d6c8a9b10\n")
        self.assertEqual(self.told_host_id(), ["host_id=3f1c7a52-9d44-4b0e-8f7b-5e2d6c8a9b10"])
        given = "00000000-0000-0000-0000-000000000001"
        self.assertEqual(self.told_host_id("--host-id", given), [f"host_id={given}"])

    def test_no_host_id(self):
        for text in ("", "uninitialized\n"):
            with self.subTest(text):
                self.machine_id.write_text(text)
                result, ask = self.connect()
                self.assertEqual(result[0], errno.EINVAL)
                self.assertIn("--host-id", result[2])
                ask.assert_not_called()

    def test_a_new_secret_is_one(self):
        path = self.block / "secret"
        made = {self.run_tool("gen-secret")[1] for _ in range(2)}
        self.assertEqual(len(made), 2)
        for secret in made:
            path.write_text(secret)
            self.assertEqual(tool.secret_of(str(path)) + "\n", secret)

    def test_a_secret_comes_from_a_file_without_its_last_newline(self):
        path = self.block / "secret"
        path.write_text("5a" * 32 + "\n")
        _, ask = self.connect("--secret-file", str(path))
        self.assertIn("secret=" + "5a" * 32, ask.call_args[0][0].split(","))

    def test_a_secret_that_is_none(self):
        path = self.block / "secret"
        for secret in (b"", b"\n", b"\xff\xfe\x00", b"5a" * 31, b"5a" * 32 + b"5",
                       b"correct horse battery staple" * 3):
            with self.subTest(secret):
                path.write_bytes(secret)
                result, ask = self.connect("--secret-file", str(path))
                self.assertEqual(result[0], errno.EINVAL)
                self.assertIn(str(path), result[2])
                ask.assert_not_called()

    def test_a_secret_file_without_a_name(self):
        result, ask = self.connect("--secret-file", "")
        self.assertEqual(result[0], errno.ENOENT)
        ask.assert_not_called()

    def test_a_comma_can_not_bring_in_an_option(self):
        path = self.block / "secret"
        path.write_text("secret,depth=1")
        result, ask = self.connect("--secret-file", str(path))
        self.assertEqual(result[0], errno.EINVAL)
        ask.assert_not_called()

    def test_no_file(self):
        result, _ = self.connect("--secret-file", str(self.block / "none"))
        self.assertEqual(result[0], errno.ENOENT)

    def test_the_kernel_refuses(self):
        for number in (errno.EACCES, errno.ENOENT, errno.ECONNREFUSED, errno.EIO):
            with self.subTest(number):
                result, _ = self.connect(answer=OSError(number, os.strerror(number)))
                self.assertEqual(result[0], number)
                self.assertIn("10.0.0.1:4420 disk0", result[2])

    def test_no_module(self):
        with unittest.mock.patch.multiple(tool, CONTROL=str(self.block / "none"),
                                          MODPROBE="/bin/false"):
            status, _, err = self.run_tool("connect", "10.0.0.1:4420", "disk0")
        self.assertEqual(status, errno.ENODEV)
        self.assertIn("modprobe kofiblk", err)

    def test_an_answer_of_no_sense(self):
        self.assertEqual(self.connect(answer="")[0][0], errno.EPROTO)


    def test_flags(self):
        _, ask = self.connect("--checksum", "--own-domain")
        told = ask.call_args[0][0].split(",")
        self.assertIn("checksum=1", told)
        self.assertIn("own_domain=1", told)

    def test_errors_name_the_option(self):
        for option, value in (("--queues", "0"), ("--queues", "17"), ("--depth", "257"),
                              ("--poll-queues", "-1"), ("--poll-queues", "16"),
                              ("--max-io", "4095"), ("--max-io", "4097"), ("--max-io", "4198400"),
                              ("--reconnect-delay", "0"), ("--ctrl-loss-tmo", "-2"),
                              ("--fast-io-fail-tmo", "99999999"), ("--keep-alive-tmo", "3601"),
                              ("--client", "a/b"), ("--client", ""), ("--client", "x" * 64)):
            with self.subTest(option, value=value):
                result, ask = self.connect(option, value)
                self.assertEqual(result[0], errno.EINVAL)
                self.assertIn(option, result[2])
                ask.assert_not_called()

    def test_a_secret_that_others_can_read(self):
        path = self.block / "secret"
        path.write_text("5a" * 32)
        for mode in (0o644, 0o640, 0o620, 0o604):
            with self.subTest(oct(mode)):
                path.chmod(mode)
                result, ask = self.connect("--secret-file", str(path))
                self.assertEqual(result[0], errno.EPERM)
                self.assertIn(f"chmod 600 {path}", result[2])
                ask.assert_not_called()
        path.chmod(0o400)
        self.assertEqual(self.connect("--secret-file", str(path))[0][0], 0)

    def test_a_secret_file_that_may_be_missing(self):
        path = self.block / "secret"
        result, ask = self.connect(f"--secret-file=-{path}")
        self.assertEqual(result[0], 0)
        self.assertNotIn("secret=", ask.call_args[0][0])
        path.write_text("5a" * 32)
        self.assertIn("secret=" + "5a" * 32,
                      self.connect(f"--secret-file=-{path}")[1].call_args[0][0])
        path.write_text("")
        self.assertEqual(self.connect(f"--secret-file=-{path}")[0][0], errno.EINVAL)

    def test_the_units_commands(self):
        """The commands of the units have options that the tool knows."""
        ran = []
        for unit in (HERE.parents[1] / "units").glob("*.service"):
            for line in unit.read_text().splitlines():
                key, _, command = line.partition("=")
                if not key.startswith("Exec") or not command.startswith("@SBIN@/kofiblk "):
                    continue
                command = command.replace("%i", "disk0").replace("$ADDRESS", "storage1")
                command = command.replace("$OPTIONS", "--client b --checksum")
                with self.subTest(unit.name, command=command), \
                        contextlib.redirect_stderr(io.StringIO()) as err:
                    try:
                        args = tool.parser().parse_args(command.split()[1:])
                    except SystemExit:
                        self.fail(err.getvalue())
                    ran.append((unit.name, args))
        self.assertEqual(len(ran), 4)
        args = next(args for name, args in ran if name == "kofiblk@.service" and
                    args.command == "connect")
        self.assertEqual((args.address, args.export, args.client, args.retry),
                         ("storage1", "disk0", "b", True))
        self.assertEqual(args.secret_file, "-/etc/kofiblk/disk0.secret")
        args = next(args for name, args in ran if name == "kofiblk@.service" and
                    args.command == "disconnect")
        self.assertEqual((args.disk, args.deactivate, args.force), (["disk0"], True, False))

    def test_each_option_has_a_help_text(self):
        for action in tool.parser()._subparsers._group_actions:
            for name, command in action.choices.items():
                for option in command._actions:
                    with self.subTest(name, option=option.dest):
                        self.assertTrue(option.help)

    def test_half_of_what_is_needed(self):
        self.assertEqual(self.run_tool("connect", "10.0.0.1:4420")[0], errno.EINVAL)
        self.assertEqual(self.run_tool("connect", "--all", "10.0.0.1:4420", "x")[0], errno.EINVAL)


class ConnectAll(Case):
    def connect(self, text, answers=None):
        path = self.block / "disks.conf"
        path.write_text(text)
        self.told = []

        def ask(options):
            values = dict(option.split("=", 1) for option in options.split(","))
            self.told.append(values)
            number = (answers or {}).get(values["export"])
            if number:
                raise OSError(number, os.strerror(number))
            return f"disk=kofiblk{len(self.told) - 1}\n"
        with unittest.mock.patch.object(tool, "ask", ask):
            return self.run_tool("connect", "--all", "--config", str(path))

    def test_all_of_them(self):
        secret = self.block / "secret"
        secret.write_text("5a" * 32)
        status, out, err = self.connect(
            "[DEFAULT]\naddress = 10.0.0.1:4420\nctrl-loss-tmo = -1\n[disk0]\nchecksum = yes\n"
            f"secret-file = {secret}\n[second]\nexport = disk1\naddress = [fd00::1]:4420\n")
        self.assertEqual((status, out, err), (0, "/dev/kofiblk0\n/dev/kofiblk1\n", ""))
        self.assertEqual([told["addr"] for told in self.told], ["10.0.0.1:4420", "[fd00::1]:4420"])
        self.assertEqual([told["export"] for told in self.told], ["disk0", "disk1"])
        self.assertEqual([told.get("checksum") for told in self.told], ["1", None])
        self.assertEqual([told["ctrl_loss_tmo"] for told in self.told], ["-1", "-1"])
        self.assertEqual(self.told[0]["secret"], "5a" * 32)

    def test_one_that_fails_keeps_no_other_away(self):
        text = "".join(f"[{name}]\naddress=10.0.0.1:4420\n" for name in ("a", "b", "c"))
        status, out, err = self.connect(text, {"a": errno.ECONNREFUSED, "b": errno.EALREADY})
        self.assertEqual((status, out), (errno.ECONNREFUSED, "/dev/kofiblk2\n"))
        self.assertIn("[a]", err)
        self.assertNotIn("[b]", err)

    def test_what_is_no_configuration(self):
        for text in ("disk0\n", "[disk0]\n", "[disk0]\naddress=x\nwhat=1\n",
                     "[disk0]\naddress=x\ndepth=many\n", "[disk0]\naddress=x\nchecksum=2\n",
                     "[a]\naddress=x\n[a]\naddress=x\n"):
            with self.subTest(text):
                status, _, err = self.connect(text)
                self.assertEqual((status, self.told), (errno.EINVAL, []))
                self.assertIn("disks.conf", err)

    def test_no_configuration(self):
        status, _, err = self.run_tool("connect", "--all", "--config", str(self.block / "none"))
        self.assertEqual(status, errno.ENOENT)
        self.assertIn("none", err)


class Retry(Case):
    """The command that the units run."""

    def connect(self, text, answers):
        """The kernel's errors by export, in the order of the attempts."""
        path = self.block / "disks.conf"
        path.write_text(text)
        # A name in the abstract namespace, as systemd's may be.
        systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(systemd.close)
        systemd.bind(f"\0kofiblk-test-{os.getpid()}")
        systemd.setblocking(False)
        self.order = []

        def ask(options):
            export = dict(option.split("=", 1) for option in options.split(","))["export"]
            self.order.append(export)
            number = answers[export].pop(0)
            if number:
                raise OSError(number, os.strerror(number))
            return f"disk=kofiblk{len(self.order)}\n"

        def sleep(_seconds):
            self.order.append(systemd.recv(4096).decode())
        with unittest.mock.patch.object(tool, "ask", ask), \
                unittest.mock.patch.object(tool.time, "sleep", sleep), \
                unittest.mock.patch.dict(os.environ, NOTIFY_SOCKET=f"@kofiblk-test-{os.getpid()}"):
            result = self.run_tool("connect", "--retry", "--all", "--config", str(path))
        if result[0] == 0:
            self.order.append(systemd.recv(4096).decode())
        return result

    def test_only_what_failed(self):
        refused = errno.ECONNREFUSED
        status, out, err = self.connect(
            "[DEFAULT]\naddress = 10.0.0.1\n[a]\n[b]\n",
            {"a": [refused, refused, errno.ETIMEDOUT, 0], "b": [0]})
        self.assertEqual((status, len(out.splitlines())), (0, 2))
        waiting = "READY=1\nSTATUS=Not connected: a"
        self.assertEqual(self.order, ["a", "b", waiting, "a", waiting, "a", waiting, "a",
                                      "READY=1\nSTATUS="])
        # A problem that lasts is reported once.
        self.assertEqual(len(err.splitlines()), 2)

    def test_what_can_not_become_right(self):
        self.assertEqual(self.connect("[a]\naddress = 10.0.0.1\nwhat = 1\n", {})[0], errno.EINVAL)
        self.assertEqual(self.order, [])


class Sessions(Case):
    def told(self, attribute):
        return [(self.block / name / "kofiblk" / attribute).read_text()
                for name in ("kofiblk0", "kofiblk1")]

    def setUp(self):
        super().setUp()
        for name in ("kofiblk0", "kofiblk1"):
            self.disk(name, export=name + "x", lost="1")

    def test_reset(self):
        self.assertEqual(self.run_tool("reset", "kofiblk1x"), (0, "", ""))
        self.assertEqual(self.told("reset"), ["", "1"])
        self.assertEqual(self.run_tool("reset", "--all"), (0, "", ""))
        self.assertEqual(self.told("reset"), ["1", "1"])

    def test_accept_loss(self):
        self.assertEqual(self.run_tool("accept-loss", "/dev/kofiblk1"), (0, "", ""))
        self.assertEqual(self.told("lost"), ["1\n", "0"])


class SetSecret(Case):
    def test_it_is_written_to_the_disk_that_is_named(self):
        path = self.block / "secret"
        path.write_text("5a" * 32 + "\n")
        for name in ("kofiblk0", "kofiblk1"):
            self.disk(name, export=name + "x")
        self.assertEqual(self.run_tool("set-secret", "kofiblk1", "--secret-file", str(path)),
                         (0, "", ""))
        told = [(self.block / name / "kofiblk" / "secret").read_text()
                for name in ("kofiblk0", "kofiblk1")]
        self.assertEqual(told, ["", "5a" * 32])

    def test_no_secret_is_no_change(self):
        self.disk("kofiblk0")
        path = self.block / "secret"
        path.write_text("\n")
        self.assertEqual(self.run_tool("set-secret", "kofiblk0", "--secret-file", str(path))[0],
                         errno.EINVAL)


class Disconnect(Case):
    def test_by_name_path_and_export(self):
        for wanted in ("kofiblk0", "/dev/kofiblk0", "disk0"):
            with self.subTest(wanted):
                self.disk("kofiblk0")
                self.vanish("kofiblk0")
                self.assertEqual(self.run_tool("disconnect", wanted)[0], 0)
                self.assertEqual(self.written, {"kofiblk0": "1"})

    def test_all(self):
        self.disk("kofiblk0")
        self.disk("kofiblk1", export="other")
        self.vanish("kofiblk0", "kofiblk1")
        self.assertEqual(self.run_tool("disconnect", "--all")[0], 0)
        self.assertEqual(set(self.written), {"kofiblk0", "kofiblk1"})

    def test_all_of_a_configuration_file(self):
        self.disk("kofiblk0")
        self.disk("kofiblk1", export="other")
        self.disk("kofiblk2", address="10.0.0.2:4420")
        self.vanish("kofiblk0", "kofiblk1", "kofiblk2")
        path = self.block / "disks.conf"
        path.write_text("[disk0]\naddress = 10.0.0.1:4420\n")
        self.assertEqual(self.run_tool("disconnect", "--all", "--config", str(path))[0], 0)
        self.assertEqual(self.written, {"kofiblk0": "1"})

    def test_a_server_whose_name_is_unknown_now(self):
        self.disk("kofiblk0")
        self.disk("kofiblk1", export="other")
        self.vanish("kofiblk0", "kofiblk1")
        path = self.block / "disks.conf"
        path.write_text("[other]\naddress = storage\n[disk0]\naddress = 10.0.0.1\n")

        def getaddrinfo(host, port, **_):
            if host == "storage":
                raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        with unittest.mock.patch.object(tool.socket, "getaddrinfo", getaddrinfo):
            status, _, err = self.run_tool("disconnect", "--all", "--config", str(path))
        self.assertEqual((status, self.written), (errno.EHOSTUNREACH, {"kofiblk0": "1"}))
        self.assertIn("[other]: address: storage: Temporary failure", err)

    def test_an_export_of_several_servers_is_not_enough(self):
        self.disk("kofiblk0")
        self.disk("kofiblk1", address="10.0.0.2:4420")
        self.vanish("kofiblk0", "kofiblk1")
        status, _, err = self.run_tool("disconnect", "disk0")
        self.assertEqual((status, self.written), (errno.EINVAL, {}))
        self.assertIn("kofiblk0, kofiblk1", err)
        self.assertEqual(self.run_tool("disconnect", "kofiblk1")[0], 0)
        self.assertEqual(self.written, {"kofiblk1": "1"})

    def test_an_export_with_the_name_of_a_disk(self):
        self.disk("kofiblk0")
        self.disk("kofiblk1", export="kofiblk0")
        self.vanish("kofiblk0", "kofiblk1")
        self.assertEqual(self.run_tool("disconnect", "kofiblk0")[0], 0)
        self.assertEqual(self.written, {"kofiblk0": "1"})

    def in_use(self, *args):
        """Check that the disk isn't disconnected unless that is forced; return the message."""
        self.vanish("kofiblk0")
        status, _, err = self.run_tool("disconnect", "kofiblk0", *args)
        self.assertEqual((status, self.written), (errno.EBUSY, {}))
        self.assertIn("--force", err)
        self.assertEqual(self.run_tool("disconnect", "--force", "kofiblk0")[0], 0)
        self.assertEqual(self.written, {"kofiblk0": "1"})
        return err

    def partition(self):
        self.disk("kofiblk0")
        directory = self.block / "kofiblk0" / "kofiblk0p1"
        (directory / "holders").mkdir(parents=True)
        (directory / "dev").write_text("259:7\n")
        return directory

    def test_a_mounted_one(self):
        self.partition()
        (self.block / "mounts").write_text(
            "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
            "22 21 259:7 / /srv/my\\040data rw,relatime shared:2 - ext4 /dev/other rw\n")
        self.assertIn("mounted on /srv/my", self.in_use())

    def test_one_that_btrfs_has_mounted(self):
        # Its numbers are of no device.
        self.partition()
        (self.block / "mounts").write_text(
            "22 21 0:40 / /srv rw,relatime - btrfs /dev/kofiblk0p1 rw\n")
        self.assertIn("mounted on /srv", self.in_use())

    def test_one_below_a_logical_volume(self):
        (self.partition() / "holders" / "dm-3").mkdir()
        self.assertIn("dm-3 uses kofiblk0p1", self.in_use())

    def test_one_below_a_logical_volume_that_nobody_uses(self):
        """blkdeactivate is told of the volume, because it does nothing with a disk."""
        holders = self.partition() / "holders"
        nodes = self.block / "dev"
        nodes.mkdir()
        for name in ("dm-3", "dm-4"):
            (holders / name).mkdir()
            (nodes / name).write_text("")
        self.vanish("kofiblk0")
        ran = []

        def run(command, **_):
            ran.append(command)
            for name in ("dm-3", "dm-4"):
                (holders / name).rmdir()
                (nodes / name).unlink()
        with unittest.mock.patch.object(tool.subprocess, "run", run):
            self.assertEqual(self.run_tool("disconnect", "--deactivate", "kofiblk0")[0], 0)
        self.assertEqual(self.written, {"kofiblk0": "1"})
        # Both are of one group.
        self.assertEqual(ran, [[tool.BLKDEACTIVATE, "-l", "wholevg,retry", str(nodes / "dm-3")]])

    def test_one_that_goes_before_it_is_deactivated(self):
        self.disk("kofiblk0")
        shutil.rmtree(self.block / "kofiblk0")
        tool.deactivate("kofiblk0")

    def test_one_with_swap(self):
        self.partition()
        (self.block / "swaps").write_text("Filename Type Size Used Priority\n"
                                          "/dev/kofiblk0p1 partition 1 0 -2\n")
        self.assertIn("swap on kofiblk0p1", self.in_use())

    def test_one_that_is_open_exclusively(self):
        self.disk("kofiblk0")
        (self.block / "dev").mkdir()
        (self.block / "dev" / "kofiblk0").write_text("")
        real = os.open

        def busy(path, flags, *args, **more):
            if flags & os.O_EXCL and os.fspath(path).endswith("dev/kofiblk0"):
                raise OSError(errno.EBUSY, "busy")
            return real(path, flags, *args, **more)
        with unittest.mock.patch.object(tool.os, "open", busy):
            self.in_use()

    def test_the_others_are_disconnected(self):
        self.partition()
        self.disk("kofiblk1")
        (self.block / "swaps").write_text("/dev/kofiblk0p1 partition 1 0 -2\n")
        self.vanish("kofiblk0", "kofiblk1")
        status, _, err = self.run_tool("disconnect", "--all")
        self.assertEqual((status, self.written), (errno.EBUSY, {"kofiblk1": "1"}))
        self.assertIn("kofiblk0 is in use", err)

    def test_a_disk_that_is_not_there(self):
        self.assertEqual(self.run_tool("disconnect", "kofiblk0")[0], errno.ENODEV)

    def test_one_that_stays(self):
        self.disk("kofiblk0")
        status, _, err = self.run_tool("disconnect", "--timeout", "0", "kofiblk0")
        self.assertEqual(status, errno.EBUSY)
        self.assertIn("kofiblk0", err)

    def vanish(self, *names):
        """The disks go once they were told to."""
        self.written = {}

        def look(name):
            path = self.block / name / "kofiblk" / "delete"
            if path.exists() and path.read_text():
                self.written[name] = path.read_text()
                shutil.rmtree(self.block / name)
            return not (self.block / name).exists()
        patch = unittest.mock.patch.object(tool, "gone", look)
        patch.start()
        self.addCleanup(patch.stop)


if __name__ == "__main__":
    unittest.main()
