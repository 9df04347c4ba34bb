# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make modules builds for the running kernel or KDIR; make check needs neither.

KDIR ?= /lib/modules/$(shell uname -r)/build
BED := python3 -B tests/qemu/bed

PREFIX ?= /usr/local
MOD_DIR = updates/kofi
# The release for which the headers build modules. In Debian 12's headers "make kernelrelease" and
# include/config/kernel.release have another one.
RELEASE = $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h)
INSTALLED = $(INSTALL_MOD_PATH)/lib/modules/$(RELEASE)
DEVEL = $(INSTALLED)/kofi

# A module's BTF takes pahole, which not every machine has.
KBUILD = $(MAKE) -C $(KDIR) M=$(CURDIR) $(if $(shell command -v pahole),,CONFIG_DEBUG_INFO_BTF_MODULES=)

# The key that signs modules. Headers of a distribution name one that only its builders have.
KEY = $(or $(CONFIG_MODULE_SIG_KEY),$(shell sed -n 's/^CONFIG_MODULE_SIG_KEY="\(.*\)"/\1/p' $(KDIR)/include/config/auto.conf))
HAS_KEY = $(filter pkcs11:%,$(KEY))$(and $(KEY),$(wildcard $(filter /%,$(KEY)) $(KDIR)/$(KEY)))

# Tests with drivers and programs that nobody here wrote: efa.ko, rdma-core, perftest, and the
# libfabric of Debian 12, which the host has, of Debian 13, and of Debian testing.
INTEROP_TESTS = efasim-pci efasim-pci-user efasim-pci-pair efasim-pci-verbs rdm-versions \
	rdm-versions-new rdm-libfabric rdm-libfabric-2 rdm-libfabric-new rdm-protocols \
	rdm-protocols-2 rdm-protocols-new rdm-rma rdm-rma-2 rdm-unsolicited-2 \
	rdm-atomics rdm-atomics-2 rdm-dgram rdm-dgram-2

KOFIBLK_TESTS = $(basename $(notdir $(wildcard tests/qemu/guest/kofiblk*.sh)))

.PHONY: modules modules_install install deb check check-more check-blk check-full interop captures quirks coverage fuzz bench bench-check bench-libfabric bench-profile kcsan demo demo-nvme shell lint compile_commands compile_commands.json docs clean help

modules: | kdir
	$(KBUILD) $@

# The modules, and beside the kernel's build directory what a module needs that is built
# against them: samples/template/Makefile takes it from there. The kernel's makefile would run
# depmod only beside a System.map, which Debian's headers don't have, so it isn't asked to.
modules_install: | kdir
	@test -e Module.symvers || { echo "Nothing was built: make modules" >&2; exit 1; }
	$(KBUILD) INSTALL_MOD_DIR=$(MOD_DIR) cmd_depmod=: $(if $(HAS_KEY),,CONFIG_MODULE_SIG_ALL=) $@
	@if test -e $(INSTALLED)/modules.builtin; then \
		PATH=$$PATH:/usr/sbin:/sbin depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) $(RELEASE) && \
			echo "depmod: done for $(RELEASE)"; \
	else \
		echo "depmod: not run, there is no kernel in $(INSTALLED)"; \
	fi
	@$(if $(HAS_KEY),:,echo "The modules aren't signed: $(KDIR) has no key.")
	install -D -m 644 -t $(DEVEL)/include/kofi include/kofi/*.h
	install -D -m 644 -t $(DEVEL) Module.symvers

# The commands, completion for bash, systemd's units, udev's rules, and manual pages if Sphinx is
# there to make them.
install:
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/sbin tools/kofi_info tools/kofiblk tools/kofiblk-server tools/kofiblk-config
	install -D -m 644 tools/kofiblk.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/kofiblk
	for name in kofiblk-server kofiblk-config; do \
		ln -sf kofiblk $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$name || exit 1; \
	done
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	for unit in kofiblk@.service kofiblk.service kofiblk-server.service; do \
		sed 's,@SBIN@,$(PREFIX)/sbin,' units/$$unit > $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit || exit 1; \
	done
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/udev/rules.d units/60-kofiblk.rules
	@command -v python3 > /dev/null || echo "The commands need python3." >&2
	@if $(MAKE) -s -C Documentation sphinx 2> /dev/null; then \
		$(MAKE) -C Documentation install-man install-calls KDIR=$(KDIR) MANDIR="$(DESTDIR)$(PREFIX)/share/man"; \
	else \
		echo "No manual pages: install python3-sphinx to have them." >&2; \
	fi

# A package with the sources for DKMS and the files of install.
deb:
	@scripts/deb.sh out

.PHONY: kdir
kdir:
	@test -e "$(KDIR)/Makefile" || { \
		echo "No kernel headers in $(KDIR)." >&2; \
		echo "Install linux-headers-$$(uname -r), or set KDIR to a kernel's build directory." >&2; \
		echo "To build and test in QEMU instead, without either: make check" >&2; \
		exit 1; }

.PHONY: packages
packages:
	@scripts/packages.sh

# V=1 shows every case. ONLY="kunit load" runs only these boots or guest tests. LEAKS=y searches for
# leaks of the suites.
check: packages
	@$(BED) check $(if $(V),--verbose) $(ONLY)

# Tests that take too long for check, most of them on Debian's kernels.
check-more: packages
	@$(BED) check --level more $(if $(V),--verbose) $(ONLY)

# The guest tests of kofiblk, including long ones. ONLY="kofiblk-fs" runs only that one.
check-blk: packages
	@$(BED) check --level full $(if $(V),--verbose) $(or $(ONLY),$(KOFIBLK_TESTS))

# Drivers and programs of others on PCI functions of the soft device, and fabric efa against
# libfabric. ONLY="rdm-protocols" runs just it. LIBFABRIC=/ROOT runs the libfabric in that root
# directory in place of Debian testing's.
interop: packages
	@$(BED) check --level full $(if $(V),--verbose) $(or $(ONLY),$(INTEROP_TESTS))

check-full: packages
	@$(BED) check --level full $(if $(V),--verbose) $(ONLY)
	@$(if $(ONLY),:,tests/verbs/quirks.sh)

# Detects data races, with a test kernel for that purpose. Takes five minutes, and six more
# to build the kernel the first time.
kcsan: packages
	@KOFI_VARIANT=kcsan $(BED) check --level full $(if $(V),--verbose) $(or $(ONLY),kunit-parallel efa)

# Shows with gcov which lines of the EFA provider suites and guest tests run. Takes ten
# minutes, and six more to build the kernel the first time.
coverage: packages
	@KOFI_VARIANT=gcov $(BED) check --level full $(if $(V),--verbose) \
		$(or $(ONLY),kunit-parallel efa rdm-libfabric-2)
	@python3 -B scripts/coverage.py prov/efa

# ONLY="sqd_waits bad_qkey" tries only these.
quirks: packages
	@tests/verbs/quirks.sh $(ONLY)

# Needs clang; the corpora grow in out/fuzz/found-*.
fuzz:
	@$(MAKE) -s -C tests/fuzz libfuzzer

# Records packets of libfabric for tests/captures: one of each type, of Debian 12's and 13's, and of
# that in LIBFABRIC=/ROOT.
captures: packages
	@$(BED) check --level full rdm-captures rdm-captures-2 $(if $(LIBFABRIC),rdm-captures-new)
	@python3 -B tests/interop/captures.py

bench: packages
	@python3 -B bench/host run $(ONLY)

# Exit status of the comparison: 3 without a baseline to compare with.
bench-check: packages
	@python3 -B bench/host check

# Measures user space's libfabric, to compare with. Takes five minutes.
bench-libfabric: packages
	@python3 -B bench/host libfabric

bench-profile: packages
	@python3 -B bench/host profile $(ONLY)

demo: packages
	@$(BED) demo $(if $(KERNEL),--kernel $(KERNEL))

demo-nvme: packages
	@$(BED) demo $(if $(KERNEL),--kernel $(KERNEL)) demo-nvme

shell: packages
	@$(BED) shell $(if $(KERNEL),--kernel $(KERNEL)) $(if $(ROLE),--role $(ROLE)) $(if $(GDB),--gdb)

lint: packages
	@scripts/check.sh

# For clangd and tools like it: how the modules are compiled for Debian's 6.12. The commands run in
# the directory of the kernel's headers, to which their other paths are relative; the build has the
# sources at PLACE (scripts/common.sh).
compile_commands: packages
	@dir=$$(scripts/build.sh 6.12) && source=$$(scripts/kernel.sh source) && \
	headers=$$(scripts/kernel.sh headers 6.12) && \
	bash -c '. scripts/common.sh; out=$$KOFI_TOP/compile_commands.json; \
		at_place "$${0%/src}" python3 -B "$$1/scripts/clang-tools/gen_compile_commands.py" \
			-d "$$PLACE/src" -o "$$out" && \
		sed -i "s,\"directory\": \".*\",\"directory\": \"$$2\",; s,$$PLACE/src,$$KOFI_TOP,g" "$$out"' \
		"$$dir" "$$source" "$$headers"
compile_commands.json: compile_commands

docs: packages
	@$(MAKE) -C Documentation

clean:
	@if [ -e "$(KDIR)/Makefile" ]; then $(MAKE) -C $(KDIR) M=$(CURDIR) clean; fi
	@scripts/build.sh clean
	@if [ -e Documentation/Makefile ]; then $(MAKE) -C Documentation clean; fi

# Any other target is the kernel's: kofi/main.i, prov/efa/ep.o, and where KDIR has the source tags
# and nsdeps.
MAKEFLAGS += --no-builtin-rules
Makefile: ;
%: kdir
	$(KBUILD) $@

help:
	@echo "  modules          build for the running kernel, or KDIR=<kernel build directory>"
	@echo "                   (KOFI_LAB=1: also tests, benchmarks and examples)"
	@echo "  modules_install  install the modules, and headers and symbols for others (INSTALL_MOD_PATH=)"
	@echo "  install          install the commands, units and manual pages (PREFIX=/usr/local, DESTDIR=)"
	@echo "  deb              build a Debian package in out/, which has DKMS build the modules"
	@echo "  check            run the suites and guest tests in QEMU (V=1, ONLY=\"NAME...\")"
	@echo "  check-more       run longer tests, most of them on Debian's kernels"
	@echo "  check-blk        run the tests of kofiblk between guests, including long ones"
	@echo "  interop          run the tests with efa.ko, rdma-core and libfabric, including long ones"
	@echo "                   (LIBFABRIC=/ROOT: also with the libfabric in that root directory)"
	@echo "  check-full       run all of these, and the long tests (SOAK=messages)"
	@echo "  kcsan            detect data races in the suites and guest tests (ONLY=\"NAME...\")"
	@echo "  coverage         show which lines of the EFA provider the tests run (ONLY=\"NAME...\")"
	@echo "  quirks           prove that the conformance test detects missing quirks"
	@echo "  fuzz             run clang's libFuzzer on the wire parsers (FUZZ_SECONDS=60)"
	@echo "  captures         record the packets that libfabric sends (tests/captures)"
	@echo "  bench            count the instructions of operations (ONLY=\"WORD...\")"
	@echo "  bench-check      the same, compared with bench/baseline.json"
	@echo "  bench-libfabric  count the instructions of user space's libfabric"
	@echo "  bench-profile    count instructions by function (ONLY=\"efa send 8B polled\")"
	@echo "  demo             run kOFI between two guests with Debian's kernel (KERNEL=stock-newest)"
	@echo "  demo-nvme        run the kernel's NVMe over fabrics on kofi_rc in the same way"
	@echo "  shell            start a shell in a guest (KERNEL=stock-6.12, ROLE=a and ROLE=b, GDB=1)"
	@echo "  lint             run all static checks"
	@echo "  compile_commands write compile_commands.json, for clangd"
	@echo "  docs             build the documentation as HTML"
	@echo "  clean            remove build results, but not the kernels in the cache"
	@echo "  others           targets of the kernel: kofi/main.i; beside its source tags, nsdeps"
