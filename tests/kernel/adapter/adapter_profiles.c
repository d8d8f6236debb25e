// SPDX-License-Identifier: GPL-2.0
/*
 * The adapters that a device can play. The numbers are those of the drivers of Linux 7.3.4 in drivers/infiniband/hw, where
 * the file and the function beside them have them. What a driver asks its firmware for is marked so, with the number that
 * one adapter has told its users, or with the driver's own default.
 */

#include <linux/sizes.h>
#include <linux/string.h>

#include "adapter.h"

static const struct adapter_profile profiles[] = {
	/* Memory as that of an adapter, and no other limits than those of the software device. */
	{ .name = "dma" },
	/* In a confidential machine, whose kernel bounces for a driver that does not ask for more. */
	{ .name = "bounce", .loses_offsets = true, .max_segment = SZ_64K },
	/* One whose regions take fewer elements than they are asked to. */
	{ .name = "short", .max_segment = SZ_4K, .takes = 200 },
	/* One that says more of itself than it has. */
	{ .name = "boastful", .grants_sends = 300, .grants_receives = 100, .grants_region_pages = 64 },
	{
		.name = "mlx5",
		.max_qp_wr = 8192, /* main.c:mlx5_ib_calc_max_qp_wr, with a firmware of log_max_qp_sz 15 */
		.max_send_sge = 30, /* main.c:mlx5_ib_query_device, with a firmware of 512 bytes a request */
		.max_recv_sge = 32, /* the same */
		.max_sge_rd = 30, /* include/linux/mlx5/device.h:MLX5_MAX_SGE_RD */
		.max_qp_rd_atom = 16, /* main.c:mlx5_ib_query_device, firmware */
		.max_qp_init_rd_atom = 16, /* the same */
		.max_segment = SZ_2G, /* drivers/net/ethernet/mellanox/mlx5/core/main.c:set_dma_caps */
		.gaps = true, /* main.c:mlx5_ib_query_device, firmware */
	},
	{
		.name = "mlx4",
		.max_qp_wr = 16351, /* main.c:mlx4_ib_query_device, firmware */
		.max_send_sge = 32, /* the same */
		.max_recv_sge = 32, /* the same */
		.max_sge_rd = 30, /* include/linux/mlx4/device.h:MLX4_MAX_SGE_RD */
		.max_qp_rd_atom = 16, /* drivers/net/ethernet/mellanox/mlx4/main.c:default_profile */
		.max_qp_init_rd_atom = 128, /* drivers/net/ethernet/mellanox/mlx4/main.c:mlx4_dev_cap, firmware */
		.max_region_pages = 511, /* include/linux/mlx4/device.h:MLX4_MAX_FAST_REG_PAGES */
		.max_segment = SZ_1G, /* drivers/net/ethernet/mellanox/mlx4/main.c:__mlx4_init_one */
	},
	{
		.name = "bnxt_re",
		.max_qp_wr = 4351, /* qplib_sp.c:bnxt_qplib_get_dev_attr, BNXT_VAR_MAX_WQE - 1 */
		.max_send_sge = 13, /* the same, BNXT_VAR_MAX_SGE */
		.max_recv_sge = 13, /* the same */
		.max_sge_rd = 13, /* the same */
		.max_qp_rd_atom = 126, /* the same, BNXT_QPLIB_MAX_OUT_RD_ATOM */
		.max_qp_init_rd_atom = 126, /* the same */
		.max_region_pages = 512, /* qplib_res.h:MAX_PBL_LVL_1_PGS */
	},
	{
		.name = "irdma",
		.max_qp_wr = 4063, /* ctrl.c:irdma_sc_dev_init, IRDMA_MAX_QP_WRS */
		.max_send_sge = 13, /* the same */
		.max_recv_sge = 13, /* the same */
		.max_sge_rd = 13, /* the same */
		.max_qp_rd_atom = 127, /* icrdma_hw.c:icrdma_init_hw, ICRDMA_MAX_IRD_SIZE */
		.max_qp_init_rd_atom = 128, /* the same has 255, the software device 128 */
		.flushes = { 20, 20 }, /* verbs.h:IRDMA_FLUSH_DELAY_MS */
	},
	{
		.name = "x722",
		.max_qp_wr = 895, /* i40iw_hw.h, a device of irdma */
		.max_send_sge = 3, /* the same */
		.max_recv_sge = 3, /* the same */
		.max_sge_rd = 1, /* the same */
		.max_qp_rd_atom = 63, /* the same */
		.max_qp_init_rd_atom = 127, /* the same */
		.flushes = { 20, 20 }, /* verbs.h:IRDMA_FLUSH_DELAY_MS */
	},
	{
		.name = "hns",
		.max_qp_wr = 32768, /* hns_roce_hw_v2.c:hns_roce_query_caps, firmware */
		.max_send_sge = 64, /* the same */
		.max_recv_sge = 64, /* the same */
		.max_sge_rd = 64, /* the same */
		.max_qp_rd_atom = 128, /* the same */
		.max_qp_init_rd_atom = 128, /* the same */
		.max_region_pages = 512, /* hns_roce_device.h:HNS_ROCE_FRMR_MAX_PA */
		.max_segment = SZ_2G, /* hns_roce_main.c:hns_roce_register_device */
		.map_sleeps = true, /* hns_roce_mr.c:hns_roce_map_mr_sg */
		.refuses_local_inv = true, /* hns_roce_hw_v2.c:set_rc_opcode */
	},
	{
		.name = "cxgb4",
		.max_qp_wr = 8190, /* device.c:c4iw_alloc */
		.max_send_sge = 17, /* t4.h:T4_MAX_SEND_SGE */
		.max_recv_sge = 4, /* t4.h:T4_MAX_RECV_SGE */
		.max_sge_rd = 1, /* provider.c:c4iw_query_device */
		.max_cqe = 65518, /* device.c:c4iw_alloc */
		.max_qp_rd_atom = 8, /* drivers/net/ethernet/chelsio/cxgb4/cxgb4_main.c:adap_init0, without an answer */
		.max_qp_init_rd_atom = 8, /* the same */
		.max_region_pages = 128, /* t4.h:t4_max_fr_depth */
	},
	{
		.name = "qedr",
		.max_qp_wr = 32767, /* drivers/net/ethernet/qlogic/qed/qed_rdma.h:QED_RDMA_MAX_WQE */
		.max_send_sge = 4, /* drivers/net/ethernet/qlogic/qed/qed_rdma.c:qed_rdma_init_devinfo */
		.max_recv_sge = 4, /* the same */
		.max_sge_rd = 4, /* the same */
		.max_qp_rd_atom = 32, /* the same */
		.max_qp_init_rd_atom = 32, /* the same */
	},
	{
		.name = "erdma",
		.max_qp_wr = 8192, /* erdma_verbs.c:erdma_query_device */
		.max_send_sge = 6, /* erdma_verbs.h:ERDMA_MAX_SEND_SGE */
		.max_recv_sge = 1, /* erdma_verbs.h:ERDMA_MAX_RECV_SGE */
		.max_sge_rd = 1, /* erdma_verbs.h:ERDMA_MAX_SGE_RD */
		.max_qp_rd_atom = 128, /* erdma_verbs.h:ERDMA_MAX_ORD */
		.max_qp_init_rd_atom = 128, /* erdma_verbs.h:ERDMA_MAX_IRD */
		.max_region_pages = 512, /* erdma_verbs.h:ERDMA_MAX_FRMR_PA */
	},
	/* The least of each at once, of all of these; and what none of them does, but may. */
	{
		.name = "worst",
		.max_qp_wr = 895,
		.max_send_sge = 2,
		.max_recv_sge = 1,
		.max_sge_rd = 1,
		.max_cqe = 1024, /* The core wants 640 for its management datagrams. */
		.max_qp_rd_atom = 1,
		.max_qp_init_rd_atom = 1,
		.max_region_pages = 16,
		.comp_vectors = 1,
		.max_segment = SZ_4K,
		.map_sleeps = true,
		.late = { .sends = 50, .receives = 10 },
		.flushes = { .sends = 10, .receives = 50 },
		.drops_unsignaled = true,
	},
};

/**
 * adapter_profile() - An adapter.
 * @name: as a module's parameter has it
 *
 * Return: what is particular to it, or NULL if there is none.
 */
const struct adapter_profile *adapter_profile(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(profiles); i++)
		if (sysfs_streq(name, profiles[i].name))
			return &profiles[i];
	return NULL;
}
