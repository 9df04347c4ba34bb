# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""scripts/ with stubs of what they call: apt with a repository of files, without network."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
OLD = "6.12.117+deb12-amd64"
NEW = "6.12.118+deb12-amd64"
LOCKED = """\
E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)
E: Unable to lock directory /var/lib/apt/lists/
"""

# The repository: lists/NAME is a package that apt knows, with its dependencies; new/ what
# the next update brings; pool/ what the mirror has; each call is a line of calls.
APT_CACHE = r"""
for last; do :; done
case $1 in
pkgnames)
	{ ls lists; cat lists/* /dev/null; } | grep "^$last" | sort -u ;;
depends)
	word="Hängt ab von"
	case ${LC_ALL-} in C*) word=Depends ;; esac
	echo "$last"
	[ -e mute ] || sed "s/^/  $word: /" "lists/$last" ;;
esac
"""

APT_GET = r"""
echo "apt-get $*" >> calls
uris=
while [ $# != 0 ]; do
	case $1 in
	-o) shift ;;
	--print-uris) uris=y ;;
	-*) ;;
	*) break ;;
	esac
	shift
done
verb=$1
shift
case $verb in
update)
	for fail in fail.*; do
		if [ -e "$fail" ]; then
			cat "$fail" >&2
			rm "$fail"
			exit 100
		fi
	done
	[ ! -e offline ] || exit 100
	for package in new/*; do
		[ ! -e "$package" ] || mv "$package" lists
	done ;;
download)
	for package; do
		[ -e "lists/$package" ] || exit 100
		[ "$uris" ] || [ -e "pool/$package" ] || exit 100
		[ "$uris" ] || echo "$package" > "$where/$package.deb"
	done ;;
esac
exit 0
"""

# What is in a package, as far as anybody looks.
DPKG_DEB = r"""
[ "$1" = -x ] || exit 1
package=$(cat "$where/$2" 2> /dev/null || cat "$2")
release=${package#linux-*-}
case $package in
linux-headers-*-common)
	set -- "$3/usr/src/$package"
	mkdir -p "$1"
	cp makefile "$1/Makefile" ;;
linux-headers-*)
	set -- "$3/usr/src/$package"
	mkdir -p "$1"
	echo "include /usr/src/linux-headers-${release%-amd64}-common/Makefile" > "$1/Makefile"
	ln -s "../../lib/linux-kbuild-${release%-amd64}/scripts" "$1/scripts" ;;
linux-kbuild-*)
	mkdir -p "$3/usr/lib/$package/scripts" ;;
linux-image-*)
	mkdir -p "$3/boot" "$3/lib/modules/$release"
	touch "$3/boot/vmlinuz-$release" "$3/boot/config-$release" \
		"$3/lib/modules/$release/modules.order" \
		"$3/lib/modules/$release/modules.builtin" ;;
esac
"""


class Case(unittest.TestCase):
    """A copy of scripts/, a cache and a PATH with stubs, as an ordinary user has it."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        self.tree = self.root / "tree"
        self.cache = self.root / "cache" / "kofi"
        self.repository = self.root / "repository"
        for name in ("bin", "tmp", "home", "repository/lists", "repository/new",
                     "repository/pool"):
            (self.root / name).mkdir(parents=True)
        (self.repository / "makefile").touch()
        shutil.copytree(TOP / "scripts", self.tree / "scripts",
                        ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in (("apt-cache", APT_CACHE), ("apt-get", APT_GET),
                           ("dpkg-deb", DPKG_DEB), ("id", "echo 0"), ("sleep", ":")):
            self.stub(name, text)
        lines = (TOP / "scripts" / "packages").read_text().splitlines()
        self.have = {line: "ii " for line in lines if not line.startswith("#")}
        self.env = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "HOME": f"{self.root}/home",
                    "XDG_CACHE_HOME": f"{self.root}/cache", "TMPDIR": f"{self.root}/tmp",
                    "LC_ALL": "C"}

    def stub(self, name, text):
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/bash\nwhere=$PWD\ncd {self.repository} || exit\n{text}")
        path.chmod(0o755)

    def run_script(self, name, *args):
        """Its status, its answer and what it said."""
        run = subprocess.run([self.tree / "scripts" / name, *args], env=self.env, text=True,
                             stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return run.returncode, run.stdout.strip(), run.stderr

    def answer(self, name, *args):
        status, answer, said = self.run_script(name, *args)
        self.assertEqual(status, 0, said)
        return pathlib.Path(answer)

    def publish(self, release, lists="lists", kinds=("headers", "image")):
        """The mirror has this release, and only this; the lists get to know it."""
        shutil.rmtree(self.repository / "pool")
        (self.repository / "pool").mkdir()
        short = release.removesuffix("-amd64")
        common = [f"linux-headers-{short}-common", f"linux-kbuild-{short}"]
        needs = {f"linux-headers-{release}": [*common, "gcc-12", f"linux-image-{release}"],
                 f"linux-image-{release}": []}
        for name in [f"linux-{kind}-{release}" for kind in kinds] + common:
            for where in (lists, "pool"):
                text = "\n".join(needs.get(name, [])) + "\n"
                (self.repository / where / name).write_text(text)
        for where in (lists, "pool"):
            (self.repository / where / "linux-image-amd64").touch()

    def installed(self):
        """What is on the machine: self.have."""
        text = "".join(f"{state} {name}\n" for name, state in self.have.items())
        self.stub("dpkg-query", f"cat << END\n{text}END\n")

    def fail_updates(self, *messages):
        for number, message in enumerate(messages):
            (self.repository / f"fail.{number}").write_text(message)

    def updates(self):
        """How often apt-get update was called."""
        calls = self.repository / "calls"
        return calls.exists() and [line.split()[-1] for line in
                                   calls.read_text().splitlines()].count("update")

    def used(self, hours, *names):
        """Makes these in the cache, as if they had been used so long ago."""
        for name in names:
            path = self.cache / name
            path.mkdir(parents=True, exist_ok=True)
            os.utime(path, (time.time() - hours * 3600,) * 2)

    def cached(self, where="kernel"):
        return sorted(path.name for path in (self.cache / where).iterdir())


class Environment(Case):
    def common(self, command='echo "$KOFI_CACHE"'):
        run = subprocess.run(["bash", "-c", f". {self.tree}/scripts/common.sh; {command}"],
                             env=self.env, text=True, capture_output=True, check=False)
        return run.returncode, run.stdout.strip(), run.stderr

    def test_no_home(self):
        self.stub("getent", f"echo root:x:0:0:root:{self.root}/home:/bin/sh")
        del self.env["XDG_CACHE_HOME"], self.env["HOME"]
        self.assertEqual(self.common()[:2], (0, f"{self.root}/home/.cache/kofi"))

    def test_caches_that_kbuild_cannot_use(self):
        for cache in ("cache", f"{self.root}/my cache", f"{self.root}/a:b"):
            with self.subTest(cache=cache):
                self.env["XDG_CACHE_HOME"] = cache
                status, _, said = self.common()
                self.assertEqual(status, 1)
                self.assertIn(cache, said)

    def test_failure_within_a_substitution(self):
        self.assertEqual(self.common("f() { false; echo on; }; x=$(f); echo $x")[:2], (1, ""))

    def own(self, suffix):
        """The directory of this checkout, as seen by its scripts."""
        status, answer, said = self.common(f"own_dir $KOFI_CACHE/build {suffix}")
        self.assertEqual(status, 0, said)
        return pathlib.Path(answer).relative_to(self.cache / "build")

    def test_directory_of_a_checkout(self):
        own = self.own("-6.1")
        self.assertEqual(self.own("-6.1"), own)
        # Others are those of other kernels, of checkouts that exist or were built just now.
        for name, owner, hours in (("1-product-6.1", "gone", 3), ("22222222-6.12", "gone", 3),
                                   ("33333333-6.1", "home", 3), ("44444444-6.1", "gone", 0)):
            self.used(hours, f"build/{name}")
            (self.cache / "build" / name / ".checkout").write_text(f"{self.root}/{owner}")
            self.used(hours, f"build/{name}")
        self.tree = self.tree.rename(self.root / "new")
        self.assertNotIn(str(self.own("-6.1")), ("33333333-6.1", "44444444-6.1", str(own)))
        # The directory of a checkout that is gone goes to a new one, but only once.
        self.used(3, f"build/{own}")
        for directory in (self.root / "newer", self.root / "newest"):
            self.tree = shutil.copytree(self.tree, directory)
            self.assertEqual(self.own("-6.1") == own, directory.name == "newer")


class Headers(Case):
    def test_with_all_packages(self):
        self.publish(OLD)
        headers = self.answer("kernel.sh", "headers", "6.12")
        self.assertEqual(headers.name, f"linux-headers-{OLD}")
        include = (headers / "Makefile").read_text().split()[1]
        self.assertTrue(pathlib.Path(include).exists())
        self.assertTrue((headers / "scripts").exists())

    def test_another_language(self):
        self.env.update(LANG="de_DE.UTF-8", LANGUAGE="de", LC_ALL="de_DE.UTF-8")
        self.test_with_all_packages()

    def test_half_of_the_packages(self):
        self.publish(OLD)
        (self.repository / "mute").touch()
        self.assertEqual(self.run_script("kernel.sh", "headers", "6.12")[0], 1)
        (self.repository / "mute").unlink()
        self.test_with_all_packages()


class Stock(Case):
    def test_without_sbin(self):
        self.publish(OLD)
        stock = self.answer("kernel.sh", "stock", "6.12")
        self.assertEqual((stock / "release").read_text().strip(), OLD)
        modules = stock / "modules" / "lib" / "modules" / OLD
        self.assertTrue((modules / "modules.dep").exists())

    def test_not_on_the_mirror(self):
        self.publish(OLD)
        (self.repository / "pool" / f"linux-image-{OLD}").unlink()
        status, _, said = self.run_script("kernel.sh", "stock", "6.12")
        self.assertEqual(status, 1)
        self.assertIn(f"cannot download linux-image-{OLD}", said)
        self.assertFalse(list((self.root / "tmp").iterdir()))


class Lists(Case):
    """What the lists of packages say, and when they are asked for anew."""

    def test_unknown_is_not_absent(self):
        self.publish(OLD, lists="new")
        self.fail_updates("E: Temporary failure resolving", "E: Temporary failure resolving")
        for kind in ("headers", "stock"):
            self.assertEqual(self.run_script("kernel.sh", kind, "6.12")[0], 1)
        self.answer("kernel.sh", "headers", "6.12")

    def test_lists_without_any_kernel(self):
        for _ in range(2):
            self.assertEqual(self.run_script("kernel.sh", "headers", "6.12")[0], 1)
        self.assertEqual(self.updates(), 2)
        self.publish(OLD, lists="new")
        self.answer("kernel.sh", "headers", "6.12")

    def test_no_such_kernel(self):
        self.publish(OLD)
        for kind in ("headers", "stock"):
            self.assertEqual(self.run_script("kernel.sh", kind, "6.99")[0], 3)
        self.assertEqual(self.updates(), 1)

    def test_debian_without_6_1(self):
        self.publish(OLD)
        (self.repository / "offline").touch()
        version = subprocess.run(["sh", "-c", ". /etc/os-release; echo $ID $VERSION_ID"],
                                 stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        known = version[0] == "debian" and int(version[1]) >= 13
        self.assertEqual(self.run_script("kernel.sh", "headers", "6.1")[0], 3 if known else 1)

    def test_point_release(self):
        self.publish(OLD)
        self.answer("kernel.sh", "headers", "6.12")
        self.assertEqual(self.updates(), 1)
        # What is here does, as long as the lists know no other.
        self.publish(NEW, lists="new")
        self.assertIn(OLD, str(self.answer("kernel.sh", "headers", "6.12")))
        self.assertEqual(self.updates(), 1)
        (self.cache / "apt-update").unlink()
        self.assertIn(NEW, str(self.answer("kernel.sh", "stock", "6.12")))
        self.assertIn(NEW, str(self.answer("kernel.sh", "headers", "6.12")))

    def test_headers_before_their_image(self):
        self.publish(NEW, kinds=["headers"])
        self.publish(OLD)
        self.assertIn(OLD, str(self.answer("kernel.sh", "headers", "6.12")))
        self.assertIn(OLD, str(self.answer("kernel.sh", "stock", "6.12")))

    def test_waits_for_another_update(self):
        self.publish(OLD, lists="new")
        self.fail_updates(LOCKED, LOCKED)
        self.answer("kernel.sh", "headers", "6.12")
        self.assertEqual(self.updates(), 3)

    def test_lists_that_nobody_may_update(self):
        self.publish(OLD)
        self.stub("id", "echo 1000")
        self.stub("sudo", "exit 1")
        self.answer("kernel.sh", "headers", "6.12")
        self.assertEqual(self.run_script("kernel.sh", "headers", "6.99")[0], 1)


class Prune(Case):
    """What the cache keeps."""
    stock = f"stock-{OLD}"

    def fetch(self):
        self.publish(OLD)
        self.answer("kernel.sh", "stock", "6.12")

    def test_old_kernels_go(self):
        self.used(24, "kernel/stock-6.12.1-amd64", "kernel/stock-6.1.1-amd64")
        self.used(1, "kernel/stock-6.12.2-amd64")
        self.fetch()
        self.assertEqual(self.cached(), ["stock-6.1.1-amd64", self.stock, "stock-6.12.2-amd64"])

    def test_what_was_interrupted(self):
        self.used(-1, "kernel/stock-6.12.3-amd64.tmp")
        self.fetch()
        self.assertEqual(self.cached(), [self.stock])

    def test_killed_while_it_removes(self):
        self.used(24, "kernel/stock-6.12.1-amd64")
        self.stub("rm", 'case $* in *6.12.1-amd64*) exit ;; esac; exec /bin/rm "$@"')
        self.fetch()
        self.assertNotIn("stock-6.12.1-amd64", self.cached())

    def test_use_counts(self):
        for kind in ("stock", "headers"):
            with self.subTest(kind=kind):
                self.publish(OLD)
                self.answer("kernel.sh", kind, "6.12")
                self.used(24, f"kernel/{kind}-{OLD}")
                self.answer("kernel.sh", kind, "6.12")
                age = time.time() - (self.cache / "kernel" / f"{kind}-{OLD}").stat().st_mtime
                self.assertLess(age, 3600)

    def test_sources(self):
        self.stub("tar", "")
        self.stub("dpkg-query", "echo 6.12.200-1")
        for hours in (30, 40, 50):
            self.used(hours, f"source/linux-6.12.{200 - hours}-1")
        self.answer("kernel.sh", "source")
        self.assertEqual(self.cached("source"), ["linux-6.12.170-1", "linux-6.12.200-1"])


class Build(Case):
    """Against headers whose makefile is the test's."""

    def setUp(self):
        super().setUp()
        shutil.copy(TOP / ".gitignore", self.tree)
        self.publish(OLD)

    def makefile(self, *recipe):
        text = "modules:\n" + "".join(f"\t@{line}\n" for line in recipe)
        (self.repository / "makefile").write_text(text)

    def build(self):
        return self.run_script("build.sh", "6.12")

    def test_warnings_that_are_said_once(self):
        for made, line in (("Module.symvers", "WARNING: modpost: missing MODULE_DESCRIPTION()"),
                           ("a.o", "a.o: warning: objtool: f() falls through")):
            with self.subTest(line):
                self.makefile(f'[ -e $(M)/{made} ] || echo "{line}"', f"touch $(M)/{made}")
                for _ in range(2):
                    status, _, said = self.build()
                    self.assertEqual(status, 1)
                    self.assertIn(line, said)
                shutil.rmtree(self.cache / "kernel")

    def test_a_compiler_that_is_not_the_kernels(self):
        self.makefile("echo 'warning: the compiler differs from the one used to build the kernel'")
        self.assertEqual(self.build()[0], 0)

    def test_locale_that_is_not_installed(self):
        """Of which perl complains. The kernel's makefiles do without LC_ALL."""
        self.env.update(LANG="xx_XX.UTF-8", LANGUAGE="xx", LC_TIME="xx_XX.UTF-8")
        self.makefile("unset LC_ALL; perl -e 1")
        status, _, said = self.build()
        self.assertEqual(status, 0, said)

    def test_objects_of_another_compiler(self):
        self.makefile("[ -e $(M)/a.o ] || echo made >> made", "touch $(M)/a.o")
        made = self.cache / "kernel" / f"headers-{OLD}/usr/src/linux-headers-{OLD}/made"
        for version, builds in (("12.2.0-14", 1), ("12.2.0-14", 1), ("12.2.0-14+deb12u1", 2)):
            self.stub("gcc", f"echo 'gcc (Debian {version}) 12.2.0'")
            self.assertEqual(self.build()[0], 0)
            self.assertEqual(len(made.read_text().split()), builds)

    def test_of_checkouts_that_are_gone(self):
        self.used(15 * 24 + 1, "build/01234567-6.12")
        self.used(24, "build/89abcdef-6.12")
        self.makefile("true")
        for _ in range(2):
            answer = pathlib.Path(self.build()[1])
            self.assertEqual(self.cached("build"), sorted(["89abcdef-6.12", answer.parent.name]))
            self.used(20 * 24, f"build/{answer.parent.name}")


class Lint(Case):
    """Checks that have nothing to look at, or not all."""

    def setUp(self):
        super().setUp()
        self.installed()
        self.git("init", "-q")

    def git(self, *args, where=None):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org",
                        "-c", "protocol.file.allow=always", *args],
                       cwd=where or self.tree, env=self.env, check=True)

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject, "-m", "Because.")

    def lint(self, name, result):
        line = self.run_script("check.sh", name)[1].splitlines()[0]
        self.assertEqual(line.split()[:2], [result, name], line)
        return line

    def test_headers(self):
        (self.tree / "a.h").touch()
        (self.repository / "lists" / "linux-image-amd64").touch()
        self.lint("headers", "skip")
        self.publish(OLD)
        (self.repository / "makefile").write_text("headers.o:\n")
        self.assertRegex(self.lint("headers", "ok"), "1 headers, none of those in tests/$")

    def test_commits(self):
        self.lint("commits", "FAIL")
        self.commit("the first is as it is")
        self.lint("commits", "ok")
        self.commit("kofi: say why")
        self.lint("commits", "ok")
        self.commit("Bad subject")
        self.commit("kofi: say why")
        self.lint("commits", "FAIL")

    def test_commits_of_a_part(self):
        for subject in ("the first is as it is", "Bad subject", "kofi: one", "kofi: another"):
            self.commit(subject)
        self.git("clone", "-q", "--depth", "2", f"file://{self.tree}", "part", where=self.root)
        shutil.rmtree(self.tree / ".git")
        (self.root / "part" / ".git").rename(self.tree / ".git")
        self.lint("commits", "skip")
        self.commit("Bad subject")
        self.lint("commits", "FAIL")


class Packages(Case):
    def setUp(self):
        super().setUp()
        self.stub("dpkg", 'echo "dpkg $*" >> calls')

    def install(self):
        self.installed()
        status, _, said = self.run_script("packages.sh")
        self.assertEqual(status, 0, said)
        calls = self.repository / "calls"
        return calls.read_text().splitlines() if calls.exists() else []

    def test_nothing_to_do(self):
        self.assertEqual(self.install(), [])

    def test_waits_for_another_update(self):
        del self.have["fio"]
        self.fail_updates(LOCKED)
        calls = self.install()
        self.assertEqual(self.updates(), 2)
        self.assertRegex(calls[-1], "^apt-get .*install .* fio$")

    def test_interrupted_installation(self):
        self.have["fio"] = "iF "
        self.stub("dpkg", """
case $1 in
--audit) [ -e mended ] || echo "fio is only half configured" ;;
--configure) echo "dpkg $*" >> calls; touch mended ;;
esac
""")
        calls = self.install()
        self.assertEqual(calls[0], "dpkg --configure -a")
        self.assertRegex(calls[-1], "^apt-get .*install .* fio$")

    def test_mending_that_another_dpkg_holds_up(self):
        self.have["fio"] = "iF "
        self.stub("dpkg", "[ $1 = --audit ] && echo fio")
        self.assertRegex(self.install()[-1], "^apt-get .*install .* fio$")


if __name__ == "__main__":
    unittest.main()
