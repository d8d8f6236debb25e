// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The file rpcrdma/connections of debugfs. Who has it open keeps the module, which
 * the files of the kernel crate do not do.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "helpers.h"

static struct dentry *directory;
static void (*describe)(struct seq_file *seq);

static int connections_show(struct seq_file *seq, void *unused)
{
	describe(seq);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(connections);

/* Makes the file, of which that function writes the text. May sleep. */
void rpcrdma_rs_show_connections(void (*all)(struct seq_file *seq))
{
	describe = all;
	directory = debugfs_create_dir("rpcrdma", NULL);
	debugfs_create_file("connections", 0400, directory, NULL,
			    &connections_fops);
}

/* Removes the file, which nobody has open while the module goes. May sleep. */
void rpcrdma_rs_hide_connections(void)
{
	debugfs_remove(directory);
}
