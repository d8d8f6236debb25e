"""Tests of what cuts the module into patches."""

import pytest

from series import cover, patches, tree
from series.patches import Patch

ROOT = """#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod kapi;

/// The suites.
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../kunit/kunit.rs"]
mod kunit;
pub(crate) mod server;

use kapi::ib;
"""
KBUILD = f"""# SPDX
#
# Of what it is made.

# What is so outside.
#
# More of it.
ifdef KBUILD_EXTMOD
CONFIG_X := m

ccflags-y += -DY
endif # KBUILD_EXTMOD

obj-$(CONFIG_X) += x.o

{tree.RULE}# The protocol crate: xdr

x-y += xdr/src/lib.o

{tree.RULE}# Bindings: rust/kapi/bindings

x-y += more.o
"""
KCONFIG = """choice
	prompt "x"

endchoice

config RPCRDMA_KUNIT_TEST
	bool "Suites"
	help
	  Of tests.

	  If unsure, say N.

config RPCRDMA_DEBUG
	bool "Checks"
"""
MAINTAINERS = "Text\n\nM: whom\n\tto ask\n\nAAA\nM:\tA <a>\nF:\ta/\n\nzzz\nM:\tZ <z>\nF:\tz/\n"
RESULTS = """Of commit abc, ``BENCH=full``, rxe, Linux 7.3; two boots.

NFS 4.2

=========  ===========  =======  =====  ====  =============  =======
Operation  total, ours  in-tree  ratio  TCP   rpcrdma, ours  in-tree
=========  ===========  =======  =====  ====  =============  =======
GETATTR            111      137  0.81     92             23       29
=========  ===========  =======  =====  ====  =============  =======

Bytes of a connection, idle

=======  ====
         idle
=======  ====
ours        1
TCP         2
=======  ====
"""


def test_a_file_comes_with_the_last_patch_that_has_it() -> None:
    series = [Patch("1", "", ("rust/kapi/ib*",), ""), Patch("2", "", ("rust/kapi/*/tests*",), "")]
    names = ["rust/kapi/ib.rs", "rust/kapi/ib/ring/tests.rs", "rust/kapi/ib/ring/wr.rs", "README.md"]
    assert patches.owners(series, names) == {names[0]: 0, names[1]: 1, names[2]: 0}


def test_of_the_module() -> None:
    patches.check()


def cut(*there: str) -> str:
    return tree.with_modules(ROOT, "rust/rpcrdma_main.rs", set(there))


def test_all_modules_there() -> None:
    assert cut("rust/kapi.rs", "kunit/kunit.rs", "rust/server.rs") == ROOT


def test_what_belongs_to_a_module_goes_with_it() -> None:
    assert cut("rust/kapi.rs") == "#![deny(unsafe_code)]\n\n#[allow(unsafe_code)]\nmod kapi;\n\nuse kapi::ib;\n"
    assert cut("kunit/kunit.rs", "rust/server.rs") == ROOT.replace("#[allow(unsafe_code)]\nmod kapi;\n\n", "")


@pytest.mark.parametrize(("name", "file"), [("xdr/src/lib.rs", "xdr/src/a.rs"), ("rust/kapi/ib.rs", "rust/kapi/ib/a.rs"),
                                            ("kunit/kunit.rs", "kunit/a.rs")])
def test_where_files_are(name: str, file: str) -> None:
    assert tree.with_modules("mod a;\n", name, {file}) == "mod a;\n"
    assert tree.with_modules("use b;\nmod a;\n", name, set()) == "use b;\n"


def test_parts_of_kbuild() -> None:
    head = "# SPDX\n#\n# Of what it is made.\n\nobj-$(CONFIG_X) += x.o\n"
    xdr = f"\n{tree.RULE}# The protocol crate: xdr\n\nx-y += xdr/src/lib.o\n"
    bindings = f"\n{tree.RULE}# Bindings: rust/kapi/bindings\n\nx-y += more.o\n"
    assert tree.with_parts(KBUILD, {"Kbuild"}) == head
    assert tree.with_parts(KBUILD, {"xdr/src/lib.rs", "rust/kapi.rs"}) == head + xdr
    assert tree.with_parts(KBUILD, {"xdr/src/lib.rs", "rust/kapi/bindings/trace.c"}) == head + xdr + bindings


def test_options() -> None:
    assert tree.with_options(KCONFIG, {"kunit/kunit.rs"}) == KCONFIG
    assert tree.with_options(KCONFIG, set()) == 'choice\n\tprompt "x"\n\nendchoice\n\nconfig RPCRDMA_DEBUG\n\tbool "Checks"\n'


def test_the_entry_is_in_its_order() -> None:
    assert tree.with_entry(MAINTAINERS, "MMM\nM:\tM <m>").split("\n\n")[2:4] == ["AAA\nM:\tA <a>\nF:\ta/", "MMM\nM:\tM <m>"]


def test_links_to_what_is_not_there() -> None:
    text = "too\nsmall (`b.rst <b.rst>`_). See (`c.rst\n<c.rst>`_)."
    assert tree.with_links(text, {"Documentation/c.rst"}) == "too\nsmall. See (`c.rst\n<c.rst>`_)."


def test_tables() -> None:
    assert cover.table(RESULTS, "NFS 4.2") == ("Operation  all, Rust    C  ratio  own, Rust   C\n"
                                               "GETATTR          111  137   0.81         23  29")
    assert cover.table(RESULTS, "Bytes of a connection") == "      idle\nRust     1"


def test_what_was_measured() -> None:
    assert cover.measured(RESULTS).startswith("The numbers are of commit abc, BENCH=full, rxe, Linux 7.3. Commits")
