//! Rows of narrow elements become columns: 32-bit words exchange their halves or bytes.
//!
//! A word of `w` units (2 halves or 4 bytes) holds a run of one row. Words that belong to `w` rows exchange units until
//! each holds a run of one column. Stage `i` exchanges, between words whose rows differ in bit `i`, the units whose
//! columns differ in bit `i`: a pair of `prmt` in one lane, or a shuffle and a `prmt` where two lanes hold the rows.

use tilewright_expr::Expr;
use tilewright_ir::thread::{Call, Inst, Regs, Stmt};
use tilewright_layout::DType;

use super::listed::lane_image;
use crate::builder::{Builder, regs};
use crate::refusal::Refusal;

/// One stage of the exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Both words are in one lane. Bits of the lane's number say whether it read its rows, or writes its columns, in
    /// turned order.
    Registers {
        /// Lane bits, as a mask, by whose parity the rows are turned.
        rows: i64,
        /// Lane bits, as a mask, by whose parity the columns are turned.
        columns: i64,
    },
    /// The words are in two lanes, whose numbers differ in one bit.
    Lanes {
        /// The position of the bit in the lane's number.
        bit: usize,
    },
}

/// How to exchange the units of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// Bytes of a unit: 1 or 2.
    pub(crate) unit: i64,
    /// The stages, from the lowest bit of rows and columns on.
    pub(crate) stages: Vec<Stage>,
}

/// The `prmt` selector that takes the first of two units from either word, and what is XORed into it to take the
/// second.
fn selectors(span: i64) -> (i64, i64) {
    if span == 1 { (0x6240, 0x1111) } else { (0x5410, 0x2222) }
}

/// What is XORed into a selector to exchange the two words.
const SWAPPED: i64 = 0x4444;

impl Exchange {
    /// Words of one exchange that a lane holds.
    pub(crate) fn words(&self) -> i64 {
        1 << self.stages.iter().filter(|stage| matches!(stage, Stage::Registers { .. })).count()
    }

    /// The selector of each stage, bound to a variable where it depends on the lane.
    pub(crate) fn name_selectors(&self, builder: &mut Builder, lane: &Expr, body: &mut Vec<Stmt>) -> Vec<Expr> {
        (0..)
            .zip(&self.stages)
            .map(|(at, stage)| {
                let (first, second) = selectors(self.unit << at);
                let images = |mask: i64, image: i64| (0..5).map(|bit| (mask >> bit & 1) * image).collect::<Vec<_>>();
                let turned = match stage {
                    Stage::Registers { rows, columns } => {
                        lane_image(&parity(lane, *rows), &[SWAPPED]) ^ lane_image(&parity(lane, *columns), &[second])
                    }
                    Stage::Lanes { bit } => lane_image(lane, &images(1 << bit, SWAPPED ^ second)),
                };
                let selector = builder.simplifier.simplify(&(turned ^ Expr::constant(first)));
                builder.name("sel", selector, body)
            })
            .collect()
    }

    /// The statements that turn the words `from` (one per row that the lane holds) into the words `to` (one per
    /// column).
    pub(crate) fn build(
        &self,
        builder: &mut Builder,
        selectors: &[Expr],
        (from, to): (&[Regs], &[Regs]),
        scratch: &Scratch,
    ) -> Result<Vec<Stmt>, Refusal> {
        let mut body = Vec::new();
        let mut words = from.to_vec();
        let mut distance = 1;
        for (at, stage) in self.stages.iter().enumerate() {
            let is_last = at + 1 == self.stages.len();
            let results = if is_last { to } else { scratch.after(at)? };
            match stage {
                Stage::Registers { .. } => {
                    for low in (0..words.len()).filter(|word| word & distance == 0) {
                        let high = low | distance;
                        let pair = vec![words[low].clone(), words[high].clone()];
                        let (first, second) = (selectors[at].clone(), self.second(builder, at, &selectors[at]));
                        body.push(permute(&results[low], pair.clone(), first));
                        body.push(permute(&results[high], pair, second));
                    }
                    distance *= 2;
                }
                Stage::Lanes { bit } => {
                    let partner = scratch.partner()?;
                    for (word, result) in words.iter().zip(results) {
                        body.push(Stmt::from(Call {
                            to: Some(partner.clone()),
                            from: vec![word.clone()],
                            arguments: vec![Expr::constant(1 << bit)],
                            ..Call::plain(Inst::ShuffleXor)
                        }));
                        body.push(permute(result, vec![word.clone(), partner.clone()], selectors[at].clone()));
                    }
                }
            }
            words = results.to_vec();
        }
        Ok(body)
    }

    fn second(&self, builder: &mut Builder, at: usize, selector: &Expr) -> Expr {
        let (_, second) = selectors(self.unit << at);
        builder.simplifier.simplify(&(selector ^ &Expr::constant(second)))
    }
}

/// The parity of the lane bits in a mask: 0 or 1.
fn parity(lane: &Expr, mask: i64) -> Expr {
    let bits = (0..5).filter(|bit| mask >> bit & 1 == 1);
    bits.fold(Expr::constant(0), |sum, bit| sum ^ (lane / (1i64 << bit) % 2))
}

fn permute(to: &Regs, from: Vec<Regs>, selector: Expr) -> Stmt {
    let arguments = vec![selector];
    Stmt::from(Call { to: Some(to.clone()), from, arguments, ..Call::plain(Inst::BytePermute) })
}

/// Registers for the intermediate words of an exchange; all exchanges use the same.
pub(crate) struct Scratch {
    /// The words after each stage but the last.
    half_way: Vec<Vec<Regs>>,
    /// The word that another lane sent.
    partner: Option<Regs>,
}

impl Scratch {
    /// The words after a stage that is not the last.
    fn after(&self, stage: usize) -> Result<&[Regs], Refusal> {
        Ok(self.half_way.get(stage).ok_or("an exchange without registers between its stages")?)
    }

    /// The register for the word that another lane sent.
    fn partner(&self) -> Result<&Regs, Refusal> {
        Ok(self.partner.as_ref().ok_or("an exchange without a register for the word of another lane")?)
    }

    /// Declares the registers that the exchange needs.
    pub(crate) fn declare(exchange: &Exchange, builder: &mut Builder, body: &mut Vec<Stmt>) -> Scratch {
        let words = exchange.words();
        let between = exchange.stages.len() as i64 - 1;
        let half_way = if between > 0 {
            let array = builder.registers("h", DType::B32, between * words, 1, body);
            (0..between).map(|stage| (0..words).map(|word| regs(array, stage * words + word, 1)).collect()).collect()
        } else {
            Vec::new()
        };
        let shuffles = exchange.stages.iter().any(|stage| matches!(stage, Stage::Lanes { .. }));
        let partner = shuffles.then(|| regs(builder.registers("p", DType::B32, 1, 1, body), 0, 1));
        Scratch { half_way, partner }
    }
}
