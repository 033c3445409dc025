//! `clusterlaunchcontrol` (PTX ISA, section 9.7.13.18).

use crate::decode::bulk::bulk;
use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::mods::Mods;
use crate::decode::operand::expect_count;
use crate::isa::Space;
use crate::op::{BulkOp, Op, QueryCancel};
use crate::ptx::ast::Operand;

impl Decoder<'_> {
    /// `[response], [mbarrier]`.
    pub(crate) fn try_cancel(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        if !mods.take("async") || !mods.take("mbarrier::complete_tx::bytes") {
            return Err("`.async` or the way of completion is missing".to_string());
        }
        let space = mods.find(Space::parse).unwrap_or(Space::Generic);
        let is_multicast = mods.take("multicast::cluster::all");
        mods.take("b128");
        expect_count(operands, 2)?;
        let (at, mbarrier) = (self.mem_ref(&operands[0], space)?, self.mem_ref(&operands[1], space)?);
        Ok(bulk(BulkOp::Cancel { at, mbarrier, is_multicast }))
    }

    /// `predicate, response`, `{x, y, z, _}, response` or `x, response`.
    pub(crate) fn query_cancel(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 2)?;
        let [response, _] = self.halves(&operands[1], false)?;
        let mut query = QueryCancel { response, is_canceled: None, first: [None; 3] };
        let is_predicate = mods.take("is_canceled") && mods.take("pred");
        let axis = mods.find(|part| part.strip_prefix("get_first_ctaid"));
        mods.drop_all(|part| matches!(part, "b128" | "b32" | "v4"));
        match (is_predicate, axis, &operands[0]) {
            (true, None, predicate) => query.is_canceled = Some(self.predicate_dest(predicate)?),
            (false, Some(""), Operand::Vector(items)) if items.len() == 4 => {
                for (slot, item) in query.first.iter_mut().zip(items) {
                    *slot = Some(self.dest(item)?);
                }
            }
            (false, Some(axis), register) => {
                let at = ["::x", "::y", "::z"].iter().position(|name| *name == axis);
                let at = at.ok_or_else(|| "the dimension is x, y or z".to_string())?;
                query.first[at] = Some(self.dest(register)?);
            }
            _ => return Err("this query is not supported".to_string()),
        }
        Ok(Op::QueryCancel(Box::new(query)))
    }
}
