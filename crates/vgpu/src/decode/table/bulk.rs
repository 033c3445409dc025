//! Bulk copies and tensor copies.

use super::Unit::{Copies, Synchronization};
use super::{Row, no_effect, one, row};
use crate::decode::bulk::bulk;
use crate::decode::operand::nth;
use crate::isa::{Scope, Space};
use crate::op::{BulkOp, FenceOrder, Op, ProxyFence};

pub(super) const ROWS: &[Row] = &[
    row(
        "cp.async.bulk",
        "9.7.9.25.4.1",
        Copies,
        &[
            "cp.async.bulk.{shared::cluster,shared::cta}.global.mbarrier::complete_tx::bytes [s], [x], a, [s]",
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [s], [x], 256, [s], b",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [x], a, [s], h",
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [s], [s], a, [s]",
            "cp.async.bulk.global.shared::cta.bulk_group [x], [s], a",
            "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [x], [s], a, b",
            "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [x], [s], a, h",
        ],
        |d, m, o| one(d.bulk_copy(m, o)),
    ),
    row(
        "cp.reduce.async.bulk",
        "9.7.9.25.4.2",
        Copies,
        &[
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.{add,min,max}.{u32,s32,u64,s64} [x], [s], a",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.{and,or,xor}.{b32,b64} [x], [s], a",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.{f32,f64} [x], [s], a",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.{f16,bf16} [x], [s], a",
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{add,min,max,inc,dec}.u32 [s], [s], a, [s]",
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{and,or,xor}.b32 [s], [s], a, [s]",
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 [s], [s], a, [s]",
        ],
        |d, m, o| one(d.bulk_reduce(m, o)),
    ),
    row("cp.async.bulk.prefetch", "9.7.9.25.4.3", Copies, &["cp.async.bulk.prefetch.L2.global [x], a"], |_, m, _| {
        no_effect(m)
    }),
    row(
        "cp.async.bulk.tensor",
        "9.7.9.25.5.2",
        Copies,
        &[
            "cp.async.bulk.tensor.1d.{shared::cluster,shared::cta}.global{.tile}.mbarrier::complete_tx::bytes [s], [x, {a}], [s]",
            "cp.async.bulk.tensor.2d.{shared::cluster,shared::cta}.global{.tile}.mbarrier::complete_tx::bytes [s], [x, {a, b}], [s]",
            "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [s], [x, {a, b, c}], [s], d",
            "cp.async.bulk.tensor.2d.shared::cluster.global{.tile}.mbarrier::complete_tx::bytes.multicast::cluster{.cta_group::1,.cta_group::2} [s], [x, {a, b}], [s], h",
            "cp.async.bulk.tensor.5d.shared::cta.global.mbarrier::complete_tx::bytes [s], [x, {a, b, c, d, e}], [s]",
            "cp.async.bulk.tensor.1d.global.shared::cta{.tile}.bulk_group [x, {a}], [s]",
            "cp.async.bulk.tensor.2d.global.shared::cta{.tile}.bulk_group [x, {a, b}], [s]",
            "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group.L2::cache_hint [x, {a, b, c, d}], [s], e",
            "cp.async.bulk.tensor.2d.{shared::cluster,shared::cta}.global.tile::gather4.mbarrier::complete_tx::bytes [s], [x, {a, b, c, d, e}], [s]",
            "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [x, {a, b, c, d, e}], [s]",
            "cp.async.bulk.tensor.3d.{shared::cluster,shared::cta}.global.im2col.mbarrier::complete_tx::bytes [s], [x, {a, b, c}], [s], {h}",
            "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster [s], [x, {a, b, c, d}], [s], {h, h}, h",
            "cp.async.bulk.tensor.5d.global.shared::cta.im2col_no_offs.bulk_group [x, {a, b, c, d, e}], [s]",
        ],
        |d, m, o| one(d.tensor_copy(m, o)),
    ),
    row(
        "cp.reduce.async.bulk.tensor",
        "9.7.9.25.5.3",
        Copies,
        &[
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{add,min,max,inc,dec,and,or,xor}{.tile}.bulk_group [x, {a, b}], [s]",
            "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs.bulk_group [x, {a, b, c, d}], [s]",
        ],
        |d, m, o| one(d.tensor_reduce(m, o)),
    ),
    row(
        "tensormap.replace",
        "9.7.9.26",
        Copies,
        &[
            "tensormap.replace.tile.global_address.{global,shared::cta}.b1024.b64 [x], d",
            "tensormap.replace.tile.rank.shared::cta.b1024.b32 [s], a",
            "tensormap.replace.tile.{box_dim,global_dim,element_stride}.shared::cta.b1024.b32 [s], 0, a",
            "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [s], 0, d",
            "tensormap.replace.tile.{elemtype,interleave_layout,swizzle_mode,swizzle_atomicity,fill_mode}.shared::cta.b1024.b32 [s], 0",
        ],
        |d, m, o| one(d.replace_in_map(m, o)),
    ),
    row(
        "tensormap.cp_fenceproxy",
        "9.7.13.19",
        Copies,
        &[
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{cta,cluster,gpu,sys}.sync.aligned [x], [s], 128",
        ],
        |d, m, o| d.copy_map(m, o),
    ),
    row(
        "cp.async.bulk.prefetch.tensor",
        "9.7.9.25.5.4",
        Copies,
        &["cp.async.bulk.prefetch.tensor.2d.L2.global{.tile} [x, {a, b}]"],
        |_, m, _| no_effect(m),
    ),
    row(
        "st.async",
        "9.7.9.13",
        Copies,
        &[
            "st.async{.weak}.shared::cluster.mbarrier::complete_tx::bytes.{b32,u32,s32,f32} [s], a, [s]",
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.{b64,u64,s64,f64} [s], d, [s]",
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [s], {a, b}, [s]",
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [s], {a, b, c, d}, [s]",
        ],
        |d, m, o| one(d.async_store(m, o, false)),
    ),
    row(
        "red.async",
        "9.7.13.8",
        Copies,
        &[
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{inc,dec,min,max,add}.u32 [s], a, [s]",
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{min,max,add}.s32 [s], a, [s]",
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{and,or,xor}.b32 [s], a, [s]",
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [s], d, [s]",
        ],
        |d, m, o| one(d.async_store(m, o, true)),
    ),
    row("cp.async.bulk.commit_group", "9.7.9.25.6.1", Copies, &["cp.async.bulk.commit_group"], |_, _, _| {
        Ok(vec![bulk(BulkOp::Commit)])
    }),
    row("cp.async.bulk.wait_group", "9.7.9.25.6.2", Copies, &["cp.async.bulk.wait_group{.read} 0"], |d, m, o| {
        one(d.bulk_wait(m, o))
    }),
    row("prefetch.tensormap", "9.7.9.15", Copies, &["prefetch.tensormap [x]"], |_, m, _| no_effect(m)),
    row(
        "fence.proxy.async",
        "9.7.13.4",
        Synchronization,
        &["fence.proxy.async{.global,.shared::cta,.shared::cluster}"],
        |_, m, _| {
            let (global, cta, cluster) = (m.take("global"), m.take("shared::cta"), m.take("shared::cluster"));
            let (shared, all) = (cta || cluster, !(global || cta || cluster));
            let fence = ProxyFence::Async { shared: shared || all, global: global || all };
            Ok(vec![bulk(BulkOp::FenceProxy(fence))])
        },
    ),
    row(
        "fence.proxy.tensormap::generic",
        "9.7.13.4",
        Synchronization,
        &[
            "fence.proxy.tensormap::generic.release.{cta,cluster,gpu,sys}",
            "fence.proxy.tensormap::generic.acquire.{cta,cluster,gpu,sys} [x], 128",
        ],
        |d, m, o| {
            let scope = m.find(Scope::parse).ok_or_else(|| "the scope is missing".to_string())?;
            Ok(if m.take("release") {
                let release = Op::Fence { scope, order: FenceOrder::Release };
                vec![bulk(BulkOp::FenceProxy(ProxyFence::ReleaseMaps(scope))), release]
            } else if m.take("acquire") {
                let acquire = Op::Fence { scope, order: FenceOrder::Acquire };
                let map = d.mem_ref(nth(o, 0)?, Space::Generic)?;
                vec![acquire, bulk(BulkOp::AcquireMap { map, scope })]
            } else {
                return Err("`.acquire` or `.release` is missing".to_string());
            })
        },
    ),
    row("fence.proxy.alias", "9.7.13.4", Synchronization, &["fence.proxy.alias"], |_, m, _| no_effect(m)),
    // More than the initializations are ordered here.
    row("fence.mbarrier_init", "9.7.13.4", Synchronization, &["fence.mbarrier_init.release.cluster"], |_, m, _| {
        m.drop_all(|part| part == "release" || part == "cluster");
        Ok(vec![Op::Fence { scope: Scope::Cluster, order: FenceOrder::Release }])
    }),
];
