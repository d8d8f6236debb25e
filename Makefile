# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# `make help` lists the targets. Kbuild itself reads the file Kbuild, not this one.

KDIR ?= /lib/modules/$(shell uname -r)/build
# Where the objects go; the source tree stays free of them, so that several kernels can be built for side by side.
# Not taken from the environment, where the name is too common.
OUT := $(CURDIR)/build/module
override OUT := $(abspath $(OUT))

LAB := /usr/bin/python3 -B tools/lab
# Debian's own, for which pytest is installed.
PYTEST := PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m pytest $(if $(TESTS),-k '$(TESTS)')
GUESTS := $(PYTEST) -n auto tests/mounts --plan

# What `modinfo` and the log will say.
ifndef RPCRDMA_VERSION
RPCRDMA_VERSION := $(shell test -x tools/version && tools/version)
endif
export RPCRDMA_VERSION

# A kernel built with clang wants its modules built with clang.
KDIR_LLVM = $(if $(LLVM),,$(shell grep -qs '^CONFIG_CC_IS_CLANG=y' $(KDIR)/include/config/auto.conf && echo LLVM=1))
# For a kernel of another architecture than this machine's (ARCH=), Debian's name of the compiler.
ifeq ($(ARCH),arm64)
CROSS_COMPILE ?= $(if $(filter aarch64,$(shell uname -m)),,aarch64-linux-gnu-)
endif
# Kbuild takes these from the command line alone.
KBUILD = $(MAKE) -C $(KDIR) M=$(CURDIR) MO=$(OUT) $(KDIR_LLVM) $(if $(RUSTC),RUSTC=$(RUSTC)) \
	$(if $(CROSS_COMPILE),CROSS_COMPILE=$(CROSS_COMPILE)) \
	KCFLAGS='$(strip $(KCFLAGS) $(patsubst %,-ffile-prefix-map=%=.,$(realpath $(KDIR)) $(CURDIR) $(OUT)))'

.PHONY: all module kdir install dkms-source clean help python3
.DEFAULT_GOAL := all

all: module

module: kdir
	+@$(KBUILD) modules
	@echo "built $(OUT)/rpcrdma.ko"

kdir:
	@tools/check-kdir $(KDIR)
	@tools/clean-for-kernel $(KDIR) $(OUT)

install: module
	+$(KBUILD) modules_install
	@# Kbuild leaves it out for a tree without System.map; without it mount would load the in-tree module.
	depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) $$(cat $(KDIR)/include/config/kernel.release)

# What a build needs, for DKMS, with its configuration.
DKMS_PARTS = Kbuild Makefile rust xdr/src tools/check-kdir tools/clean-for-kernel tools/kernel-types tools/own-stack tools/prepare-tree
DKMS_SOURCE = $(DESTDIR)/usr/src/rpcrdma-$(RPCRDMA_VERSION)

dkms-source:
	mkdir -p $(DKMS_SOURCE)
	cp -r --preserve=mode,timestamps --parents $(DKMS_PARTS) $(DKMS_SOURCE)
	install -m 755 debian/put-back $(DKMS_SOURCE)/tools
	sed 's/#MODULE_VERSION#/$(RPCRDMA_VERSION)/' debian/rpcrdma-dkms.dkms > $(DKMS_SOURCE)/dkms.conf
	@echo "next: dkms install rpcrdma/$(RPCRDMA_VERSION)"

clean:
	rm -rf build

# What is needed to start; the rest is installed by itself.
bench: CHARTS := matplotlib
python3:
	@/usr/bin/python3 -c 'import jinja2, pytest, xdist$(CHARTS:%=, %)' 2> /dev/null || { apt-get update && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 python3-pytest python3-pytest-xdist \
		python3-jinja2 $(CHARTS:%=python3-%); }

LAB_TARGETS := try demo mutants series setup bench deb
MOUNT_TARGETS := matrix adapters soak requester responder life memory storm
TEST_TARGETS := check check-host check-kunit check-mount check-deb check-tools check-series check-tests in-tree-check kernels
.PHONY: $(LAB_TARGETS) $(MOUNT_TARGETS) $(TEST_TARGETS) on-device
$(LAB_TARGETS) $(MOUNT_TARGETS) $(TEST_TARGETS): python3

$(LAB_TARGETS):
	@$(LAB) $@

$(MOUNT_TARGETS):
	@$(GUESTS) $@

SELFTESTS := $(wildcard tools/*/selftests)

check:
	@$(PYTEST) -n auto -m 'not long' $(SELFTESTS) tests/host tests/kunit tests/mounts

check-host:
	@$(PYTEST) -n auto $(SELFTESTS) tests/host

check-kunit:
	@$(PYTEST) tests/kunit

check-mount:
	@$(GUESTS) check -m 'not long'

check-deb:
	@$(PYTEST) tests/packages

check-tools:
	@$(PYTEST) tests/tools

check-series:
	@$(PYTEST) tests/series

check-tests:
	@$(PYTEST) tests/defects

in-tree-check:
	@$(PYTEST) tests/in-tree

kernels:
	@$(PYTEST) tests/kernels

on-device:
	@tools/on-device/rpcrdma_on_device.py --report build/on-device.txt $(CLIENT) $(SERVER) $(MOUNT) $(EXPORT)

help:
	@echo 'Building:'
	@echo '  make [KDIR=dir]  build rpcrdma.ko for the running kernel, or for the tree in KDIR; ARCH=arm64 to cross-compile for'
	@echo '                   arm64 (CROSS_COMPILE=aarch64-linux-gnu-)'
	@echo '  make install     install it below /lib/modules (INSTALL_MOD_PATH= for another root)'
	@echo '  make dkms-source  put the source where DKMS looks for it, /usr/src (DESTDIR= for another root)'
	@echo '  make deb         Debian packages: for the newest 7.3 kernel of Debian, for DKMS, tools, and the documentation, in build/deb,'
	@echo '                   which apt can use as a repository; with a source package'
	@echo '  make clean       remove the build directory (OUT= of an earlier make stays)'
	@echo
	@echo 'Seeing it work and testing it (root, Debian 12 or 13, x86-64, git and make; the rest is installed):'
	@echo '  make demo        mount a server over RDMA between two virtual machines, our module at both ends'
	@echo '                   CLIENT=c or SERVER=c puts the in-tree module there'
	@echo '  make check       what every change has to pass; pytest counts in the last line. Its parts are:'
	@echo '  make check-host  the tests that need no virtual machine (clippy needs the debugging kernel, though)'
	@echo '  make check-kunit the KUnit suites, on a debugging kernel'
	@echo '  make check-mount mounts between two virtual machines'
	@echo
	@echo 'Further tests, of which none is a part of check as a whole:'
	@echo '  make matrix      the full list of mount tests in every combination of devices, versions and modules (hours)'
	@echo '  make check-deb   the packages of make deb on machines of Debian: installed, upgraded, removed, each time started again;'
	@echo '                   DKMS, with another kernel and with Secure Boot, too'
	@echo '  make check-tools mountstats, nfsstat, perf, PCP and others with this module and with the in-tree one, and drgn; writes'
	@echo '                   what they print, and Documentation/tools.rst with it, into build/tools'
	@echo '  make adapters    on emulated devices with the limits of adapters, what a mount makes of them; DEVICE=mlx5|cxgb4-iwarp|worst|...'
	@echo '  make in-tree-check  the module inside a kernel tree: chosen by Kconfig, built as a module and into the kernel;'
	@echo '                   that kernel mounts'
	@echo '  make kernels     on every kernel that Debian has the source of, and on plain ones: builds, loads, mounts (an hour);'
	@echo '                   KERNELS= takes a part of their names'
	@echo '  make series      the module as patches for a kernel tree, for git am, in build/series; and what was found wrong in the'
	@echo '                   kernel itself, as mails in build/fixes'
	@echo '  make check-series  whether each of them applies and builds, and what the tools of the kernel say of it'
	@echo '  make on-device   tests of a mount between two real machines, over ssh, and a report;'
	@echo '                   CLIENT=root@one SERVER=root@other MOUNT=/mnt EXPORT=/export'
	@echo '  make soak        what is hardest on connections and memory, in turn for SOAK_MINUTES=30 (290 reach all);'
	@echo '                   ends with what was done in numbers'
	@echo '  make check-tests plants each defect of tests/defects and wants its test to fail; DEFECTS= takes numbers of some'
	@echo '  make mutants     plants small mistakes in the protocol crate and the state machines, which host tests have to notice;'
	@echo '                   MUTANTS= takes one file, or rust/ or xdr/src/'
	@echo '  make try         the shortest way to a mount, for the loop of a developer'
	@echo '                   CLIENT=ours|c  SERVER=ours|c  KERNEL=stock|debug  DEVICE=rxe|siw|dma|...  VERS=3|4.0|4.1|4.2'
	@echo '  make requester   what no Linux client sends, from a requester of our own: every byte of the answers is compared'
	@echo '                   SERVER=ours|c  KERNEL=stock|debug  DEVICE=rxe|siw|dma|...'
	@echo '  make responder   a server of our own does what none should, to a client with our module'
	@echo '                   KERNEL=debug|stock  DEVICE=rxe|siw|dma|...'
	@echo '  make life        connections, listeners and devices come and go under load; END=server|client  DEVICE=rxe|siw|dma|...'
	@echo '  make memory      allocations fail, processes get too little memory, swap on the mount; DEVICE=rxe|siw|dma|...'
	@echo '  make storm       everything is used at once while everything is broken, the power of the server included;'
	@echo '                   DEVICE=rxe|siw|dma|...  SOAK_MINUTES=30'
	@echo '  make bench       what the module costs beside the in-tree one, by instruction count; BENCH=default|quick|full'
	@echo '  make setup       fill the cache (tools, guests, kernels) without running a test'
	@echo
	@echo 'Options for the build: RPCRDMA_KUNIT=1 adds the KUnit suites, RPCRDMA_DEBUG=1 the checks of test builds;'
	@echo 'OUT=dir puts the objects there, RUSTC= and LLVM= are handed to the kernel build.'
	@echo 'VERSION=1|2 is that of RPC-over-RDMA (try, adapters, life, memory, storm).'
	@echo 'DEVICE= is rxe (software RoCE), siw (software iWARP), or a name of Documentation/testing.rst, "Adapters".'
	@echo 'Options for the tests: TESTS= is what -k of pytest takes, a part of a name or several with "and", "or" and "not";'
	@echo 'CELLS= is the name of a cell, a pattern, or a part of names: make matrix CELLS="siw-*krb5p*" TESTS=small_files.'
	@echo 'Options for the machines: ACCEL=kvm|tcg instead of the probe; ARCH=arm64 for emulated ones of that architecture'
	@echo '(try, check-kunit, requester, responder).'
	@echo 'The cache is in $${XDG_CACHE_HOME:-~/.cache}/rpcrdma; it can be removed when no run is under way.'
