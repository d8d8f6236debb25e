// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Makes the trace events, and the functions that fire them from Rust.
 */
#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "trace.h"
