#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Proves that check.sh turns red: puts one fault at a time into a copy of this
# checkout, runs the check that is there for it, and expects it to fail and to
# name the fault.
#
#   prove.sh              all faults
#   prove.sh CHECK        only those that this check is for

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

COPY=$KOFI_CACHE/lint/prove
ONLY=${1-}
proved=0
missed=0

fresh()
{
	mkdir -p "$COPY"
	rsync -rlp --checksum --delete --exclude /.git --filter ':- .gitignore' "$KOFI_TOP/" "$COPY/"
}

# expect CHECK WORD: the check must fail on the copy, and say WORD.
expect()
{
	local out
	out=$("$COPY/scripts/check.sh" "$1" 2> /dev/null) && out="it passed: $out"
	if grep -q '^FAIL' <<< "$out" && grep -qF -- "$2" <<< "$out"; then
		proved=$((proved + 1))
		echo "ok    $1: $2"
	else
		missed=$((missed + 1))
		echo "MISS  $1: $2"
		echo "$out"
	fi
}

# fault CHECK WORD FILE: what stdin says is added to the file.
fault()
{
	if [ -n "$ONLY" ] && [ "$ONLY" != "$1" ]; then
		cat > /dev/null
		return
	fi
	fresh
	mkdir -p "$(dirname "$COPY/$3")"
	cat >> "$COPY/$3"
	expect "$1" "$2"
}

# edit CHECK WORD FILE SED: the file is changed.
edit()
{
	[ -z "$ONLY" ] || [ "$ONLY" = "$1" ] || return 0
	fresh
	sed -i "$4" "$COPY/$3"
	if cmp -s "$COPY/$3" "$KOFI_TOP/$3"; then
		die "nothing in $3 to be changed by $4"
	fi
	expect "$1" "$2"
}

# subject TEXT: commits nothing under that subject.
subject()
{
	git -C "$COPY" -c user.name=x -c user.email=x@example.org \
		commit -q --allow-empty -m "$1" ${2:+-m "$2"}
}

# commit WORD TEXT [BODY]: a history of a good commit and this one.
commit()
{
	[ -z "$ONLY" ] || [ "$ONLY" = commits ] || return 0
	fresh
	rm -rf "$COPY/.git"
	git -C "$COPY" init -q
	subject "the first is as it is"
	subject "${@:2}"
	expect commits "$1"
}

fresh
rm -rf "$COPY/.git"
git -C "$COPY" init -q

SPDX='SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause'

fault licences GPL-2.0 LICENSES/preferred/GPL-2.0 <<< "and more"
fault licences bad.c kofi/bad.c <<< "/* nobody's */"
fault layers rdma/ib_verbs.h kofi/main.c <<< "#include <rdma/ib_verbs.h>"
fault sizes kofi/bad.c kofi/bad.c < <(yes '' | head -n 801)
fault style kofi/main.c kofi/main.c <<< "int  kofi_bad( void );"
commit "not 'area" "Did something" "Because."
commit "65 are the limit" "kofi: $(printf 'x%.0s' {1..70})" "Because."
commit "about why" "kofi: say nothing"
fault kerneldoc kofi_bad kofi/main.c << 'END'
/**
 * kofi_bad() - lacks its parameter
 *
 * Context: Any.
 * Return: 0.
 */
static int kofi_bad(int a)
{
	return a;
}
END
fault kerneldoc "kofi_bad() has no kernel-doc" include/kofi/fabric.h <<< "int kofi_bad(void);"
for build in build-6.12 build-6.1 build-test; do
	fault $build kofi_bad kofi/main.c <<< "static int kofi_bad;"
done
fault sparse restricted kofi/main.c << 'END'
static __maybe_unused u32 kofi_bad(__le32 a)
{
	return a;
}
END
fault headers kofi/bad.h kofi/bad.h <<< "static inline int kofi_bad(struct fid *fid) { return fid->fclass; }"
fault headers redefinition kofi/bad.h <<< "struct kofi_twice { int a; };"
edit datacalls "fi_send: 2 indirect calls" include/kofi/endpoint.h \
	's/^\treturn READ_ONCE(ep->msg)->send(/\tREAD_ONCE(ep->msg)->inject(ep, buf, len, dest_addr);\n&/'
edit datacalls "fi_cq_signal is no longer" include/kofi/eq.h \
	's/return cq->ops->signal(cq);/return cq->fid.fclass;/'
fault readme fi_nosuch README.md << 'END'

```c
#include <kofi/fabric.h>
int bad(void);
int bad(void) { return fi_nosuch(); }
```
END
fault readme namespace README.md << 'END'

```c
#include <linux/module.h>
#include <kofi/fabric.h>
static int __init bad_init(void)
{
	return fi_version();
}
module_init(bad_init);
```
END
fault scripts SC2086 scripts/bad.sh << END
#!/bin/sh
# $SPDX
rm \$1
END
fault scripts "imported but unused" scripts/check/bad.py << END
# $SPDX
import os
END
fault words "==> receive" README.md <<< "rec""ieve"
fault words gone.rst README.md <<< "[a](Documentation/gone.rst)"
fault docs nosuch Documentation/index.rst <<< ":ref:\`nosuch\`"
fault docs toctree Documentation/bad.rst << END
.. $SPDX

Orphan
======
END
fault docs bad.h include/kofi/bad.h <<< "/** a header without a page */"

echo "$proved proved, $missed missed"
[ "$missed" = 0 ]
