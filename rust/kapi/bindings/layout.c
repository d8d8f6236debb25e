// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sizes and offsets as the C compiler of this kernel sees them, for the
 * structures that Rust code looks into. bindgen reads the headers with another
 * compiler and other options; should the two ever disagree, the module does
 * not build. This file is only compiled to assembly: each string below becomes
 * a line of layout_generated.rs, an assertion on the binding of the same name.
 */
#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/net.h>
#include <linux/scatterlist.h>
#include <linux/sunrpc/auth.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/rdma_rn.h>
#include <linux/sunrpc/sched.h>
#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/xdr.h>
#include <linux/sunrpc/xprt.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>

/* Only the operand needs to be a constant; the assembler prints it. */
#define SIZE(type) \
	asm volatile("\n.ascii \"->size!(" #type ", %0);\"" \
		     : : "i" (sizeof(struct type)))
#define FIELD(type, field) \
	asm volatile("\n.ascii \"->field!(" #type ", " #field ", %0);\"" \
		     : : "i" (offsetof(struct type, field)))
/* bindgen names the members of anonymous unions and structures. */
#define INNER(type, field, path) \
	asm volatile("\n.ascii \"->field!(" #type ", " path ", %0);\"" \
		     : : "i" (offsetof(struct type, field)))

int main(void)
{
	SIZE(rpc_xprt);
	FIELD(rpc_xprt, kref);
	FIELD(rpc_xprt, ops);
	FIELD(rpc_xprt, timeout);
	FIELD(rpc_xprt, addr);
	FIELD(rpc_xprt, addrlen);
	FIELD(rpc_xprt, prot);
	FIELD(rpc_xprt, cwnd);
	FIELD(rpc_xprt, max_payload);
	FIELD(rpc_xprt, backlog);
	FIELD(rpc_xprt, state);
	FIELD(rpc_xprt, min_reqs);
	FIELD(rpc_xprt, max_reqs);
	FIELD(rpc_xprt, connect_cookie);
	FIELD(rpc_xprt, stat);
	FIELD(rpc_xprt, bind_timeout);
	FIELD(rpc_xprt, reestablish_timeout);
	FIELD(rpc_xprt, idle_timeout);
	FIELD(rpc_xprt, connect_timeout);
	FIELD(rpc_xprt, max_reconnect_timeout);
	FIELD(rpc_xprt, last_used);
	FIELD(rpc_xprt, xprt_net);
	FIELD(rpc_xprt, servername);
	FIELD(rpc_xprt, address_strings);
	FIELD(rpc_xprt, transport_lock);
	FIELD(rpc_xprt, queue_lock);
	FIELD(rpc_xprt, reserve_lock);
	FIELD(rpc_xprt, xid);
	FIELD(rpc_xprt, xmit_queue);
	FIELD(rpc_xprt, xprt_class);
#ifdef CONFIG_SUNRPC_BACKCHANNEL
	FIELD(rpc_xprt, bc_serv);
	FIELD(rpc_xprt, bc_xprt);
	FIELD(rpc_xprt, bc_pa_lock);
#endif

	SIZE(rpc_rqst);
	FIELD(rpc_rqst, rq_xprt);
	FIELD(rpc_rqst, rq_snd_buf);
	FIELD(rpc_rqst, rq_rcv_buf);
	FIELD(rpc_rqst, rq_task);
	FIELD(rpc_rqst, rq_cred);
	FIELD(rpc_rqst, rq_xid);
	FIELD(rpc_rqst, rq_cong);
	FIELD(rpc_rqst, rq_xmit);
	FIELD(rpc_rqst, rq_enc_pages);
	FIELD(rpc_rqst, rq_enc_pages_num);
	FIELD(rpc_rqst, rq_release_snd_buf);
	FIELD(rpc_rqst, rq_buffer);
	FIELD(rpc_rqst, rq_callsize);
	FIELD(rpc_rqst, rq_rbuffer);
	FIELD(rpc_rqst, rq_rcvsize);
	FIELD(rpc_rqst, rq_xmit_bytes_sent);
	FIELD(rpc_rqst, rq_private_buf);
	FIELD(rpc_rqst, rq_connect_cookie);
	FIELD(rpc_rqst, rq_xtime);
	FIELD(rpc_rqst, rq_majortimeo);
#ifdef CONFIG_SUNRPC_BACKCHANNEL
	FIELD(rpc_rqst, rq_bc_pa_state);
#endif

	SIZE(rpc_task);
	FIELD(rpc_task, tk_status);
	FIELD(rpc_task, tk_client);
	FIELD(rpc_task, tk_msg);
	FIELD(rpc_task, tk_flags);
	FIELD(rpc_task, tk_rpc_status);
	FIELD(rpc_task, tk_rqstp);
	FIELD(rpc_task, tk_pid);

	SIZE(rpc_message);
	FIELD(rpc_message, rpc_proc);

	SIZE(rpc_procinfo);
	FIELD(rpc_procinfo, p_decode);
	FIELD(rpc_procinfo, p_statidx);

	SIZE(rpc_cred);
	FIELD(rpc_cred, cr_auth);

	SIZE(rpc_auth);
	FIELD(rpc_auth, au_flags);

	SIZE(rpc_clnt);
	FIELD(rpc_clnt, cl_prog);
	FIELD(rpc_clnt, cl_vers);
	FIELD(rpc_clnt, cl_clid);
	FIELD(rpc_clnt, cl_timeout);

	SIZE(rpc_timeout);
	FIELD(rpc_timeout, to_initval);
	FIELD(rpc_timeout, to_maxval);
	FIELD(rpc_timeout, to_increment);
	FIELD(rpc_timeout, to_retries);
	FIELD(rpc_timeout, to_exponential);

	SIZE(xdr_buf);
	FIELD(xdr_buf, head);
	FIELD(xdr_buf, tail);
	FIELD(xdr_buf, pages);
	FIELD(xdr_buf, page_base);
	FIELD(xdr_buf, page_len);
	FIELD(xdr_buf, flags);
	FIELD(xdr_buf, buflen);
	FIELD(xdr_buf, len);

	SIZE(rpc_xprt_ops);
	FIELD(rpc_xprt_ops, alloc_slot);
	FIELD(rpc_xprt_ops, close);
	FIELD(rpc_xprt_ops, print_stats);
	FIELD(rpc_xprt_ops, connect);
	FIELD(rpc_xprt_ops, buf_alloc);
	FIELD(rpc_xprt_ops, send_request);
	FIELD(rpc_xprt_ops, bc_destroy);

	SIZE(xprt_class);
	FIELD(xprt_class, ident);
	FIELD(xprt_class, setup);
	FIELD(xprt_class, owner);
	FIELD(xprt_class, name);
	FIELD(xprt_class, netid);

	SIZE(xprt_create);
	FIELD(xprt_create, net);
	FIELD(xprt_create, dstaddr);
	FIELD(xprt_create, addrlen);
	FIELD(xprt_create, servername);
	FIELD(xprt_create, bc_xprt);
	FIELD(xprt_create, connect_timeout);
	FIELD(xprt_create, reconnect_timeout);

	SIZE(svc_xprt_class);
	FIELD(svc_xprt_class, xcl_name);
	FIELD(svc_xprt_class, xcl_owner);
	FIELD(svc_xprt_class, xcl_ops);
	FIELD(svc_xprt_class, xcl_max_payload);
	FIELD(svc_xprt_class, xcl_ident);

	SIZE(svc_xprt_ops);

	SIZE(svc_xprt);
	FIELD(svc_xprt, xpt_class);
	FIELD(svc_xprt, xpt_flags);
	FIELD(svc_xprt, xpt_server);
	FIELD(svc_xprt, xpt_remote);
	FIELD(svc_xprt, xpt_net);
	FIELD(svc_xprt, xpt_bc_xprt);

	SIZE(svc_rqst);
	FIELD(svc_rqst, rq_xprt);
	FIELD(svc_rqst, rq_server);
	FIELD(svc_rqst, rq_arg);
	FIELD(svc_rqst, rq_res);
	FIELD(svc_rqst, rq_pages);
	FIELD(svc_rqst, rq_respages);
	FIELD(svc_rqst, rq_next_page);
	FIELD(svc_rqst, rq_maxpages);
	FIELD(svc_rqst, rq_pages_nfree);
	FIELD(svc_rqst, rq_flags);
	FIELD(svc_rqst, rq_auth_slack);
	FIELD(svc_rqst, rq_xprt_ctxt);
	FIELD(svc_rqst, rq_xid);
	FIELD(svc_rqst, rq_prot);
	FIELD(svc_rqst, rq_prog);
	FIELD(svc_rqst, rq_vers);

	SIZE(svc_serv);
	FIELD(svc_serv, sv_max_mesg);
	FIELD(svc_serv, sv_nrthreads);


	SIZE(ib_device);
	FIELD(ib_device, name);
	FIELD(ib_device, num_comp_vectors);
	FIELD(ib_device, attrs);
	FIELD(ib_device, phys_port_cnt);

	FIELD(ib_device, port_data);
	FIELD(ib_device, local_dma_lkey);

	SIZE(ib_device_ops);
	FIELD(ib_device_ops, post_send);
	FIELD(ib_device_ops, map_mr_sg);
	FIELD(ib_device_ops, size_ib_pd);

	SIZE(ib_port_data);
	FIELD(ib_port_data, immutable);

	SIZE(ib_device_attr);
	FIELD(ib_device_attr, max_qp_wr);
	FIELD(ib_device_attr, device_cap_flags);
	FIELD(ib_device_attr, kernel_cap_flags);
	FIELD(ib_device_attr, max_send_sge);
	FIELD(ib_device_attr, max_recv_sge);
	FIELD(ib_device_attr, max_sge_rd);
	FIELD(ib_device_attr, max_cqe);
	FIELD(ib_device_attr, max_qp_rd_atom);
	FIELD(ib_device_attr, max_qp_init_rd_atom);
	FIELD(ib_device_attr, max_fast_reg_page_list_len);

	SIZE(ib_qp_init_attr);
	FIELD(ib_qp_init_attr, event_handler);
	FIELD(ib_qp_init_attr, qp_context);
	FIELD(ib_qp_init_attr, send_cq);
	FIELD(ib_qp_init_attr, recv_cq);
	FIELD(ib_qp_init_attr, cap);
	FIELD(ib_qp_init_attr, sq_sig_type);
	FIELD(ib_qp_init_attr, qp_type);
	FIELD(ib_qp_init_attr, port_num);
	SIZE(ib_qp_cap);
	FIELD(ib_qp_cap, max_send_wr);
	FIELD(ib_qp_cap, max_recv_wr);
	FIELD(ib_qp_cap, max_send_sge);
	FIELD(ib_qp_cap, max_recv_sge);
	FIELD(ib_qp_cap, max_rdma_ctxs);

	SIZE(ib_send_wr);
	FIELD(ib_send_wr, next);
	INNER(ib_send_wr, wr_cqe, "__bindgen_anon_1.wr_cqe");
	FIELD(ib_send_wr, sg_list);
	FIELD(ib_send_wr, num_sge);
	FIELD(ib_send_wr, opcode);
	FIELD(ib_send_wr, send_flags);
	INNER(ib_send_wr, ex.invalidate_rkey, "ex.invalidate_rkey");

	SIZE(ib_reg_wr);
	FIELD(ib_reg_wr, wr);
	FIELD(ib_reg_wr, mr);
	FIELD(ib_reg_wr, key);
	FIELD(ib_reg_wr, access);

	SIZE(ib_rdma_wr);
	FIELD(ib_rdma_wr, wr);
	FIELD(ib_rdma_wr, rkey);

	SIZE(ib_recv_wr);
	FIELD(ib_recv_wr, next);
	INNER(ib_recv_wr, wr_cqe, "__bindgen_anon_1.wr_cqe");
	FIELD(ib_recv_wr, sg_list);
	FIELD(ib_recv_wr, num_sge);

	SIZE(ib_sge);
	FIELD(ib_sge, addr);
	FIELD(ib_sge, length);
	FIELD(ib_sge, lkey);

	SIZE(ib_wc);
	INNER(ib_wc, wr_cqe, "__bindgen_anon_1.wr_cqe");
	FIELD(ib_wc, status);
	FIELD(ib_wc, opcode);
	FIELD(ib_wc, vendor_err);
	FIELD(ib_wc, byte_len);
	FIELD(ib_wc, qp);
	INNER(ib_wc, ex.invalidate_rkey, "ex.invalidate_rkey");
	FIELD(ib_wc, wc_flags);

	SIZE(ib_cqe);
	FIELD(ib_cqe, done);

	SIZE(ib_cq);
	FIELD(ib_cq, device);
	FIELD(ib_cq, cq_context);
	FIELD(ib_cq, cqe);
	FIELD(ib_cq, res);

	SIZE(ib_qp);
	FIELD(ib_qp, device);
	FIELD(ib_qp, pd);
	FIELD(ib_qp, send_cq);
	FIELD(ib_qp, recv_cq);
	FIELD(ib_qp, qp_context);

	SIZE(ib_pd);
	FIELD(ib_pd, local_dma_lkey);
	FIELD(ib_pd, flags);
	FIELD(ib_pd, device);
	FIELD(ib_pd, res);

	SIZE(ib_mr);
	FIELD(ib_mr, device);
	FIELD(ib_mr, pd);
	FIELD(ib_mr, lkey);
	FIELD(ib_mr, rkey);
	FIELD(ib_mr, iova);
	FIELD(ib_mr, length);
	INNER(ib_mr, type, "type_");
	FIELD(ib_mr, res);

	SIZE(ib_event);
	FIELD(ib_event, event);
	FIELD(ib_event, element);

	SIZE(rdma_rw_ctx);

	SIZE(rdma_cm_id);
	FIELD(rdma_cm_id, device);
	FIELD(rdma_cm_id, context);
	FIELD(rdma_cm_id, qp);
	FIELD(rdma_cm_id, event_handler);
	FIELD(rdma_cm_id, route);
	FIELD(rdma_cm_id, port_num);

	SIZE(rdma_cm_event);
	FIELD(rdma_cm_event, event);
	FIELD(rdma_cm_event, status);
	FIELD(rdma_cm_event, param);

	SIZE(rdma_conn_param);
	FIELD(rdma_conn_param, private_data);
	FIELD(rdma_conn_param, private_data_len);
	FIELD(rdma_conn_param, responder_resources);
	FIELD(rdma_conn_param, initiator_depth);
	FIELD(rdma_conn_param, retry_count);
	FIELD(rdma_conn_param, rnr_retry_count);

	SIZE(sockaddr);
	SIZE(__kernel_sockaddr_storage);

	SIZE(work_struct);
	SIZE(delayed_work);
	FIELD(delayed_work, work);
	FIELD(delayed_work, timer);
	SIZE(completion);
	SIZE(scatterlist);
	FIELD(scatterlist, length);
	FIELD(scatterlist, dma_address);
	SIZE(kvec);
	SIZE(bio_vec);
	SIZE(bvec_iter);
	FIELD(bvec_iter, bi_size);

	return 0;
}
