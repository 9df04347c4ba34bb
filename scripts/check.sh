#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs the static checks and prints a line for each.
#
#   check.sh              all of them
#   check.sh NAME...      only these
#   check.sh -l           list their names and descriptions
#
# A check is a function below, with a line in CHECKS. If its status isn't 0 it fails, and its
# output is shown. Status 3 means that it can't run on this machine. Builds use a copy in the
# cache.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

CHECKS="
selftest	the checks of scripts/check catch what they are for
licences	SPDX lines, MAINTAINERS, kernel's licence texts
layers		who may include whom, exports, kernel versions
sizes		lines of the core, of a file, of a function
style		checkpatch --strict
commits		subjects and bodies of the branch's commits
kerneldoc	kernel-doc -Wall, and nothing public without it
build-6.12	W=1 -Werror against Debian's 6.12
build-6.1	W=1 -Werror against Debian's 6.1
build-newest	W=1 -Werror against the newest of Debian's backports, with its compiler
build-test	W=1 -Werror against the test kernel, if it was built
sparse		sparse with endian checks
headers		each header compiles alone and twice
datacalls	a data call compiles to one indirect call
layout		fabric efa's packets are laid out as libfabric's
readme		the C of README.md and of the guides builds and links
scripts		shellcheck, pyflakes
words		codespell, links between documents
docs		Sphinx without a warning
"

KERNEL_SH=$KOFI_TOP/scripts/kernel.sh
LIB=$KOFI_TOP/scripts/check
NOT_HERE=3
SHOWN_LINES=25
# A directory in the cache for each checkout.
WORK=$(own_dir "$KOFI_CACHE/lint")
# Debian's Python, even if another one is first in PATH.
PYTHON=/usr/bin/python3
export PYTHONDONTWRITEBYTECODE=1

names()
{
	sed -n 's/^\([a-z0-9.-]\+\)\t.*/\1/p' <<< "$CHECKS"
}

# tree_files GLOB...: print the checkout's files that match, tracked or not ignored.
tree_files()
{
	git -C "$KOFI_TOP" ls-files -co --exclude-standard -- "$@" |
		while read -r f; do
			[ ! -f "$KOFI_TOP/$f" ] || echo "$f"
		done
}

# scripts_of WORD: print the files whose first line runs WORD. The caller is in the tree's top.
scripts_of()
{
	# shellcheck disable=SC2016
	tree_files | xargs awk -v run="^#!.*[ /]($1)" 'FNR == 1 && $0 ~ run { print FILENAME } { nextfile }'
}

# once NAME TOOL COMMAND...: run COMMAND, which uses the file TOOL, with the files of which stdin has
# the names, except those that have passed it with their present content, in any checkout.
once()
{
	local list=$WORK/$1 passed
	passed=$KOFI_CACHE/lint/$1-$({ cat "$2" .checkpatch.conf; echo "${@:3}"; } | sha256sum | cut -c 1-12)
	touch "$passed"
	xargs -r sha256sum | grep -vxFf "$passed" > "$list" || :
	cut -c 67- "$list" | xargs -r -n 8 -P "$(nproc)" "${@:3}" || return
	cat "$list" >> "$passed"
}

# --- builds ---

# headers_of TREE: print the argument for make -C. TREE is 6.12, 6.1, newest or test.
headers_of()
{
	local newest
	case $1 in
	newest) "$KOFI_TOP/scripts/newest.sh" root; return ;;
	6.*) "$KERNEL_SH" headers "$1"; return ;;
	esac
	mkdir -p "$KOFI_CACHE/kernel"
	newest=$(find "$KOFI_CACHE/kernel" -maxdepth 1 -name 'test-*' ! -name '*.tmp' -printf '%T@ %p\n' |
		sort -rn | sed -n '1s/^[^ ]* //p')
	if [ -z "$newest" ]; then
		say "the test kernel isn't built yet"
		return $NOT_HERE
	fi
	echo "$newest/build"
}

# is_here TREE: fail if this machine can't have the kernel or hasn't built it.
is_here()
{
	local rc=0
	headers_of "$1" > /dev/null || rc=$?
	[ $rc != $NOT_HERE ]
}

# sources: print a copy of this checkout, for builds outside of its Kbuild files.
sources()
{
	copy_sources "$WORK/src"
	echo "$WORK/src"
}

# build TREE ARGUMENT...: run build.sh. Prints the directory that was built.
build()
{
	is_here "$1" || return $NOT_HERE
	"$KOFI_TOP/scripts/build.sh" "$@"
}

# single TREE DIR: build a directory of generated sources with the tree's flags.
single()
{
	local hdrs
	hdrs=$(headers_of "$1") || return
	# Without a module's BTF, which takes pahole.
	make -s -k -j2 -C "$hdrs" M="$2" W=1 KCFLAGS=-Werror CONFIG_DEBUG_INFO_BTF_MODULES= "${@:3}"
}

# Flags of a source outside of the tree's Kbuild files.
single_flags()
{
	echo "ccflags-y := -I$1/include -I$1/compat/efa -include $1/compat/compat.h"
}

# Flags of somebody else's module, which has only the headers that are installed.
user_flags()
{
	echo "ccflags-y := -I$1/include"
}

# put FILE: write stdin to FILE unless it has that content already, to keep its time for make.
put()
{
	local text
	text=$(cat)
	[ -e "$1" ] && [ "$text" = "$(cat "$1")" ] || echo "$text" > "$1"
}

check_build-6.12() { build 6.12; }
check_build-6.1() { build 6.1; }
check_build-newest() { build newest; }
check_build-test() { build test; }

# Warnings are errors, because a build with warnings isn't kept. CHECK_ENDIAN is the default.
check_sparse()
{
	build 6.12 C=2 CF=-Wsparse-error
}

# headers TREE FLAGS PATTERN...: build a source for each header, which includes it twice.
headers()
{
	local kernel=$1 flags=$2 copy dir f n
	copy=$(sources)
	dir=$WORK/headers-$kernel-$flags
	mkdir -p "$dir"
	shift 2
	{
		"$flags" "$copy"
		echo "obj-m := headers.o"
		tree_files "$@" | while read -r f; do
			n=$(echo "$f" | tr -c 'a-z0-9\n' _)
			printf '#include "%s"\n#include "%s"\n' "$copy/$f" "$copy/$f" | put "$dir/$n.c"
			echo "headers-y += $n.o"
		done
	} | put "$dir/Kbuild"
	single "$kernel" "$dir" headers.o
}

# Headers in tests/ need KUnit, which Debian's kernels lack; those in tests/fuzz and tests/interop
# a C library. One kernel is enough: the builds for the others include them all. The public ones are
# also built as others' modules include them.
check_headers()
{
	local kernel
	for kernel in 6.1 6.12; do
		! is_here "$kernel" 2> /dev/null || headers "$kernel" user_flags 'include/kofi/*.h'
	done
	if is_here test 2> /dev/null; then
		headers test single_flags '*.h' ':!tests/fuzz/*' ':!tests/interop/*'
		echo "$(tree_files '*.h' ':!tests/fuzz/*' ':!tests/interop/*' | wc -l) headers"
	elif is_here 6.12 2> /dev/null; then
		headers 6.12 single_flags '*.h' ':!tests/*'
		echo "$(tree_files '*.h' ':!tests/*' | wc -l) headers, none of those in tests/"
	else
		echo "no kernel to compile them for"
		return $NOT_HERE
	fi
}

check_datacalls()
{
	local copy dir=$WORK/calls rc=0
	copy=$(sources)
	mkdir -p "$dir"
	"$PYTHON" "$LIB/calls.py" source "$dir" || rc=1
	{
		single_flags "$copy"
		echo "ccflags-y += -ffunction-sections"
		echo "obj-m := datacalls.o"
	} | put "$dir/Kbuild"
	single 6.12 "$dir" datacalls.o
	"$PYTHON" "$LIB/calls.py" judge "$dir/datacalls.o" || rc=1
	return $rc
}

check_layout()
{
	"$LIB/layout.sh"
}

check_readme()
{
	local copy dir=$WORK/readme made
	"$PYTHON" "$LIB/docs.py" template
	copy=$(build 6.12)
	rm -rf "$dir"
	mkdir -p "$dir"
	made=$("$PYTHON" "$LIB/docs.py" extract "$dir")
	[ -n "$made" ] || die "README.md shows no C"
	{
		user_flags "$copy"
		for f in $made; do
			echo "obj-m += $f.o"
			# A guide shows more than its module uses.
			[[ $f = readme* ]] || echo "CFLAGS_$f.o := -Wno-unused-function"
		done
	} | put "$dir/Kbuild"
	single 6.12 "$dir" KBUILD_EXTRA_SYMBOLS="$copy/Module.symvers" modules 2>&1 | tee "$dir/log"
	! grep -qiE 'warning|error' "$dir/log"
}

# --- text ---

check_selftest()
{
	PYTHONPATH=$LIB "$PYTHON" -m unittest discover -q -s "$KOFI_TOP/tests/checks" 2>&1 | tee "$WORK/log/unittest"
	# No tests at all are no success.
	grep -q '^Ran [1-9]' "$WORK/log/unittest"
}

check_licences()
{
	local ksrc f rc=0 patterns
	ksrc=$("$KERNEL_SH" source)
	for f in GPL-2.0 BSD-2-Clause; do
		cmp "$KOFI_TOP/LICENSES/preferred/$f" "$ksrc/LICENSES/preferred/$f" || rc=1
	done
	cd "$KOFI_TOP"
	# Each pattern of MAINTAINERS has a file, and each file a pattern. Git's patterns are the kernel's.
	mapfile -t patterns < <(sed -n 's/^F:\t//p' MAINTAINERS)
	git --glob-pathspecs ls-files --error-unmatch -- "${patterns[@]}" > /dev/null || rc=1
	! git --glob-pathspecs ls-files -co --exclude-standard -- "${patterns[@]/#/:!}" | grep . || rc=1
	{ scripts_of . && tree_files '*.[chS]' '*.sh' '*.py' '*.rst' '*Makefile' Kbuild Kconfig '*.1' '*.8'; } |
		xargs grep -L 'SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause' > "$WORK/unlicensed" || :
	! sed 's/$/: no SPDX line/' "$WORK/unlicensed" | grep . || rc=1
	return $rc
}

check_layers()
{
	"$PYTHON" "$LIB/layers.py"
}

check_sizes()
{
	"$PYTHON" "$LIB/sizes.py"
}

# .checkpatch.conf has the exceptions, with reasons.
check_style()
{
	local ksrc checkpatch rc=0
	ksrc=$("$KERNEL_SH" source)
	checkpatch=(once style "$ksrc/scripts/checkpatch.pl" perl "$ksrc/scripts/checkpatch.pl"
		--no-tree --strict --terse --show-types --no-summary --color=never)
	cd "$KOFI_TOP"
	tree_files '*.[chS]' ':!compat/*' ':!*trace.h' ':!bench/plugin.c' ':!tests/fuzz/*' |
		"${checkpatch[@]}" -f || rc=1
	# Versions are compared here, and an older kernel's macro takes more or less.
	tree_files 'compat/*.[chS]' | "${checkpatch[@]}" -f \
		--ignore LINUX_VERSION_CODE,CONSTANT_COMPARISON,MACRO_ARG_UNUSED || rc=1
	# The tracing macros are laid out as the kernel's own trace headers are.
	tree_files '*trace.h' | "${checkpatch[@]}" -f \
		--ignore OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT || rc=1
	# No code of the kernel's: types and interface are C's and QEMU's.
	tree_files bench/plugin.c 'tests/fuzz/*.c' | "${checkpatch[@]}" -f \
		--ignore PREFER_KERNEL_TYPES,AVOID_EXTERNS,BIT_MACRO,MACRO_ARG_UNUSED,EXPORT_SYMBOL || rc=1
	return $rc
}

# .gitlint has the rules, CONTRIBUTING.md the areas. Commits up to this one are as they are.
CHECKED_SINCE=381c98284eae535c32fb4999e8a8f6b28f7cc874
check_commits()
{
	local areas
	cd "$KOFI_TOP"
	# shellcheck disable=SC2016
	areas=$(sed -n 's/^- `\([a-z]*\)`:.*/\1/p' CONTRIBUTING.md | paste -sd '|')
	if ! git cat-file -e "$CHECKED_SINCE" 2> /dev/null; then
		echo "no git checkout, or a shallow one"
		return $NOT_HERE
	fi
	gitlint -c "title-match-regex.regex=^($areas)(, ($areas))*: [a-z]" \
		--commits "$CHECKED_SINCE..HEAD"
}

check_kerneldoc()
{
	local ksrc rc=0
	ksrc=$("$KERNEL_SH" source)
	cd "$KOFI_TOP"
	"$PYTHON" "$LIB/kdoc.py" || rc=1
	tree_files '*.c' '*.h' | once kernel-doc "$ksrc/scripts/kernel-doc" \
		perl "$ksrc/scripts/kernel-doc" -none -Wall -Werror || rc=1
	return $rc
}

check_scripts()
{
	local rc=0
	cd "$KOFI_TOP"
	{ scripts_of '(ba|da|)sh'; tree_files '*.sh'; } | sort -u |
		xargs -r shellcheck -x -P SCRIPTDIR || rc=1
	{ scripts_of 'python'; tree_files '*.py'; } | sort -u | xargs -r pyflakes3 || rc=1
	return $rc
}

check_words()
{
	local rc=0
	cd "$KOFI_TOP"
	tree_files ':!LICENSES/*' | once codespell /usr/bin/codespell codespell || rc=1
	# A comment begins with the name of its subject, not with a clause.
	! git grep --untracked -nE '(/\*+|^ \*|^\s*#|""") *(What|Who|Whose|Whether)\b|^ \*.* - (what|who|whether) ' \
		-- ':!*.md' ':!*.rst' ':!LICENSES' || rc=1
	"$PYTHON" "$LIB/docs.py" links || rc=1
	return $rc
}

check_docs()
{
	local rc=0
	"$PYTHON" "$LIB/docs.py" api parameters counters versions abi || rc=1
	"$PYTHON" "$LIB/knobs.py" || rc=1
	make -s -C "$KOFI_TOP/Documentation" BUILDDIR="$WORK/docs" man || rc=1
	make -s -C "$KOFI_TOP/Documentation" BUILDDIR="$WORK/docs" html || rc=1
	return $rc
}

# --- the run ---

# run NAME: run a check and print its line, and its output if it failed.
run()
{
	local name=$1 log=$WORK/log/$1 rc start=$SECONDS note
	# Not as a condition: that would switch off set -e inside.
	set +e
	(set -e; "check_$name") > "$log" 2>&1 < /dev/null
	rc=$?
	set -e
	note=$(tail -n 1 "$log")
	case $rc in
	0) result=ok; [ "$(wc -l < "$log")" = 1 ] || note= ;;
	"$NOT_HERE") result=skip ;;
	*) result=FAIL; note= ;;
	esac
	printf '%-5s %-12s %3d s  %s\n' "$result" "$name" $((SECONDS - start)) "$note"
	[ "$result" = FAIL ] || sed -n 's/^warning:/      &/p' "$log"
	if [ "$result" = FAIL ]; then
		head -n $SHOWN_LINES "$log" | sed 's/^/      /'
		[ "$(wc -l < "$log")" -le $SHOWN_LINES ] || echo "      ... all of it in $log"
	fi
}

run_all()
{
	local name ok=0 failed=0 skipped=0 result
	mkdir -p "$WORK/log"
	touch "$WORK"
	drop_unused "${WORK%/*}"
	for name in "$@"; do
		run "$name"
		case $result in
		ok) ok=$((ok + 1)) ;;
		skip) skipped=$((skipped + 1)) ;;
		*) failed=$((failed + 1)) ;;
		esac
	done
	echo "$ok passed, $failed failed, $skipped skipped"
	[ $failed = 0 ]
}

if [ "${1-}" = -l ]; then
	echo "$CHECKS" | sed '/^$/d' | expand -t 14
	exit
fi
for name in "$@"; do
	names | grep -qxF -- "$name" || die "no check is called $name; they are: $(names | xargs)"
done
if [ $# = 0 ]; then
	mapfile -t all < <(names)
	set -- "${all[@]}"
fi
"$KOFI_TOP/scripts/packages.sh"
locked "lint-${WORK##*/}" run_all "$@"
