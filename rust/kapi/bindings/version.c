// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The version of a module that was built outside of a kernel tree; in one it has the kernel's.
 */
#include <linux/module.h>
#include <linux/printk.h>

#include "helpers.h"

#ifdef RPCRDMA_VERSION
#include <generated/utsrelease.h>

MODULE_VERSION(RPCRDMA_VERSION);
#endif

void rpcrdma_rs_say_version(void)
{
#ifdef RPCRDMA_VERSION
	pr_info(KBUILD_MODNAME ": version " RPCRDMA_VERSION
		", in Rust, built for Linux " UTS_RELEASE "\n");
#endif
}
